-- key: 7131f2d42246e4c14cf64e52e6790bde1b486df7e541d571d50fb99451e90151
-- head: 7:98dd670945490d15800e22183241ed48cb037be53d5503733d3bda6e1fe16544
-- receipt: {"events": [{"event": {"hidden": null, "kind": "requested", "sequence": 2, "shown": {"records": 1}, "subject": "f3c50a60c74375ad9582d3c1c0afa269", "time": "2026-11-26T16:56:20+00:00"}, "proof": ["e997a96b00cfa435b53ff87550481e7b8b21249e0a465153dfe7851aa81260b6", "c6ca3f020e819e2c26f9c975dcb2a3e266912df5245332d6b4a74fdc3ddcaac3", "94730d0f5a2c25410b69a45512d86eb0a673cc20ad7efc791ee88630fe98bc02"]}, {"event": {"hidden": "5168462930483052485d811114f6eb0dbe3036c141c0ef5f20613677ed25dd6e", "kind": "planned", "sequence": 4, "shown": {"after": 0, "records": 2, "requests": 2, "steps": 0, "up_to": 3, "version": 2}, "subject": null, "time": "2026-11-26T16:56:20+00:00"}, "proof": ["96522828ee9e0fead5588ada9bc4a3b9e5eda705ac235eb375e43ec6c64bab0e", "fe8be7f3b2e567e2f1be1b6f4a54595dbec2bd39ece53976f9e0a206f7744ef2", "94730d0f5a2c25410b69a45512d86eb0a673cc20ad7efc791ee88630fe98bc02"]}, {"event": {"hidden": "b8d122b5f8c47efacfe141ab1efe29d8c4e7fade18645252cd0863ab74e76d13", "kind": "applied", "sequence": 5, "shown": {"certificate_sha256": "4ba31e495164298bc997539fdeac2b816156970209d37240593d40642c60ca8b", "delta": 1e-06, "epsilon": 0.9999999999999645, "epsilon_all_published": 1.4546710777101255, "extra_delta": 1.6639327686766174e-153, "kind": "residual", "reading": "scheduled", "version": 2, "weights_sha256": "8287d4c2177a9b5f2a04e45a7026c8af838c1ba0525e678020bdd3124446e448"}, "subject": null, "time": "2026-11-26T16:56:20+00:00"}, "proof": ["5e042fad49ee0744cc780e0c69c10bb6f848ea40a2b1afd6bc4a1a573afbb7e8", "6eb6774f1e0013a1b3e5b14a2116ee0d8c48f7e5c33e17ebe980978b3c780559", "e6f7c18fd8a15b08c44669dab9c10033f55ee58a845179f9527e4580e45b52a3"]}], "format": "certified_unlearning receipt 1", "head": "7:98dd670945490d15800e22183241ed48cb037be53d5503733d3bda6e1fe16544", "pseudonym": "f3c50a60c74375ad9582d3c1c0afa269", "signature": null, "since": null}
BEGIN TRANSACTION;
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT,
    payload TEXT NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
INSERT INTO "events" VALUES(1,'2026-11-26T16:56:20+00:00','initialised',NULL,'{"key_check":"86c7382c68398b71abd8ebae5afb0ddfe59c7412b27e89254355f2ea3999cfb8","start":{"id_column":"customer","model_sha256":"50ddab83d0936348bdd703f3d6592219c6a38d5dfe8330fc1a0f062e3f9c2856","people":24,"records":24,"source":"/tmp/customers.csv","source_digest":"e22c127d105064a665eaba41e324daeac0904b87a92376785af495eb868e7cfc","source_modified":1795712179677828849,"training_digest":"5559a3f14d8783d96b327ba11e924de2d94bc26b7d17297b67f69cb70ea7dd76"},"version":{"certificate_sha256":"b1c53fa5309e295333de4df0867469bf3862ed649dec14010d1cba842941e500","delta":1e-06,"epsilon":0.9999999999999645,"epsilon_all_published":0.99999999999998,"extra_delta":1.6639327686766174e-153,"kind":"residual","secret_digest":"8936d817462f066c249fdbb7276001f9337b3cb5e5c98e7cde1462d9f5f4298d","version":1,"weights_sha256":"5c85194aa4a77b5967ec4448db84f153dfa4e40242a4b7ea72d4223047805b9a"}}','0000000000000000000000000000000000000000000000000000000000000000','ec1d5d7666dada3621aa908a62fc09e5f0f7e65af3b2ef34dcc699a946ba87de');
INSERT INTO "events" VALUES(2,'2026-11-26T16:56:20+00:00','requested','customer-3','{"records":1}','ec1d5d7666dada3621aa908a62fc09e5f0f7e65af3b2ef34dcc699a946ba87de','40f33f3a177e06c880eb58aa4f80f859b1cb1152a5a9f5f89c5b7ed0e68a2999');
INSERT INTO "events" VALUES(3,'2026-11-26T16:56:20+00:00','requested','customer-4','{"records":1}','40f33f3a177e06c880eb58aa4f80f859b1cb1152a5a9f5f89c5b7ed0e68a2999','59a33ea0fe0db05d7ff8d463656420a946847530d8552a90497739f00cd30c83');
INSERT INTO "events" VALUES(4,'2026-11-26T16:56:20+00:00','planned',NULL,'{"after":0,"records":2,"requests":2,"steps":0,"training_digest":"9e9e95c9a83685b135acbc18a408658c1d6a5ab9100b8b7030bb1df7b0359797","up_to":3,"version":2}','59a33ea0fe0db05d7ff8d463656420a946847530d8552a90497739f00cd30c83','7c5fb400416493a2a72c6d7d2c531b7b920ca5e3024bd6ca45f99c7de4806b99');
INSERT INTO "events" VALUES(5,'2026-11-26T16:56:20+00:00','applied',NULL,'{"certificate_sha256":"4ba31e495164298bc997539fdeac2b816156970209d37240593d40642c60ca8b","delta":1e-06,"epsilon":0.9999999999999645,"epsilon_all_published":1.4546710777101255,"extra_delta":1.6639327686766174e-153,"kind":"residual","reading":"scheduled","secret_digest":"f17ef6d817ca162d2de90626d27d9c01da805d82e49cedd75c3997ae5c023f21","version":2,"weights_sha256":"8287d4c2177a9b5f2a04e45a7026c8af838c1ba0525e678020bdd3124446e448"}','7c5fb400416493a2a72c6d7d2c531b7b920ca5e3024bd6ca45f99c7de4806b99','3aa5a2415a3f655b2cd2fbea3fb6fe17e72b0d92fd7f99e089794aab9fbba457');
INSERT INTO "events" VALUES(6,'2026-11-26T16:56:20+00:00','held','customer-5','{"due":"2026-12-26","reason":"a court asked","records":1}','3aa5a2415a3f655b2cd2fbea3fb6fe17e72b0d92fd7f99e089794aab9fbba457','6524a8a258f928f7c1ffeb4c3e27302be9bccd84e387da9c88a9f45417ac1f15');
INSERT INTO "events" VALUES(7,'2026-11-26T16:56:20+00:00','requested','customer-6','{"records":1}','6524a8a258f928f7c1ffeb4c3e27302be9bccd84e387da9c88a9f45417ac1f15','395b01a2678fc2ee026f9ef4bae6ffc001282401394231199796655045385423');
CREATE TABLE records (
    identifier TEXT NOT NULL,
    row INTEGER NOT NULL UNIQUE,
    tag BLOB NOT NULL,
    PRIMARY KEY (identifier, row)
) STRICT, WITHOUT ROWID;
INSERT INTO "records" VALUES('customer-0',0,X'8C60ED5623B236076190CC35CFDFA8CF');
INSERT INTO "records" VALUES('customer-1',1,X'50798078FDAFA4C48C3BA18A5562CF31');
INSERT INTO "records" VALUES('customer-10',10,X'F7142974CA2B8D3605B7A720F59400CA');
INSERT INTO "records" VALUES('customer-11',11,X'FA15F0D93F6FE921BD8BE062785EEB39');
INSERT INTO "records" VALUES('customer-12',12,X'A9B4920805A12A0D256D6C9E5F4F229A');
INSERT INTO "records" VALUES('customer-13',13,X'9022BC71F713D82AB9E7F0754F27ED11');
INSERT INTO "records" VALUES('customer-14',14,X'EB6ADFDD57A39904D5180B0897CF73ED');
INSERT INTO "records" VALUES('customer-15',15,X'54B24D70A66CD975B33CAB42860B4814');
INSERT INTO "records" VALUES('customer-16',16,X'2802E3812691377CAC865C0FD43B78F6');
INSERT INTO "records" VALUES('customer-17',17,X'0AFFFC4A74E49B73CE9C5C25490D4DD6');
INSERT INTO "records" VALUES('customer-18',18,X'EBA5BC0CA9E15631CE36AAA62CAE9EBB');
INSERT INTO "records" VALUES('customer-19',19,X'B7FDD36BE00071C16DE397646C9BF298');
INSERT INTO "records" VALUES('customer-2',2,X'8ED9148EB59774460660FEC51BDBB993');
INSERT INTO "records" VALUES('customer-20',20,X'26AC521C417B8120EBFD179D103F6641');
INSERT INTO "records" VALUES('customer-21',21,X'4EAAF3C79F3F7FBCF3568A88D3358035');
INSERT INTO "records" VALUES('customer-22',22,X'9BA599F38A15E80EF63D8E3787F022C3');
INSERT INTO "records" VALUES('customer-23',23,X'64A3A4670ED87FD0D699F5AD2556B35D');
INSERT INTO "records" VALUES('customer-5',5,X'FB7CA5D68DDCD3631ADB841C7A56B313');
INSERT INTO "records" VALUES('customer-6',6,X'7D7F6839E3D0037E5B1ED1B122C2BFA0');
INSERT INTO "records" VALUES('customer-7',7,X'EA47A38A3932788D19CB5A102BA38BDD');
INSERT INTO "records" VALUES('customer-8',8,X'92EA1390625545DAFA8B4BAFAEC0F7AE');
INSERT INTO "records" VALUES('customer-9',9,X'A61AC7FAA94A0714DB51151CFEAA3672');
CREATE TABLE spellings (
    identifier TEXT PRIMARY KEY,
    folded TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_kind ON events (kind, sequence);
CREATE UNIQUE INDEX requested_once ON events (subject) WHERE kind = 'requested';
CREATE TRIGGER events_are_not_edited BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE INDEX spellings_by_folded ON spellings (folded);
COMMIT;
