BEGIN TRANSACTION;
CREATE TABLE contexts (
    switch TEXT NOT NULL, context INTEGER NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL,
    PRIMARY KEY (switch, context),
    FOREIGN KEY (name, generation) REFERENCES placements ON DELETE CASCADE
) STRICT;
INSERT INTO "contexts" VALUES('s0',0,'g',3);
INSERT INTO "contexts" VALUES('s1',0,'g',3);
CREATE TABLE epochs (
    switch TEXT NOT NULL, kind TEXT NOT NULL, pipe INTEGER NOT NULL, epoch INTEGER NOT NULL, spans TEXT NOT NULL,
    PRIMARY KEY (switch, kind, pipe, epoch)
) STRICT;
INSERT INTO "epochs" VALUES('s0','slot',1,9,'0-8,16-24');
CREATE TABLE groups (
    name TEXT PRIMARY KEY, spec TEXT NOT NULL, state TEXT NOT NULL, generation INTEGER NOT NULL,
    last INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
INSERT INTO "groups" VALUES('g','["g", ["h0", "h1", "h2"], null, "refined", ["allgather", "allreduce", "barrier", "broadcast", "reduce", "reducescatter"], 8]','active',3,4,'why');
CREATE TABLE hosts (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE) STRICT;
INSERT INTO "hosts" VALUES('h0',2);
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO "meta" VALUES('next_tree',7);
INSERT INTO "meta" VALUES('next_qp',1000);
INSERT INTO "meta" VALUES('topology',99);
CREATE TABLE placements (
    name TEXT NOT NULL REFERENCES groups ON DELETE CASCADE, generation INTEGER NOT NULL, tree INTEGER NOT NULL UNIQUE,
    placed TEXT NOT NULL, agreed INTEGER, PRIMARY KEY (name, generation)
) STRICT;
INSERT INTO "placements" VALUES('g',3,0,'[[["h0","h1","h2"],null,"refined",["allreduce"],null,1,0,null,false],[["h0","h1","h2"],[[["s0",0],[[["s0","s1"],0,["s1",0],[0,1]],[["s0","s2","h2"],1,null,[2]]],null],[["s1",0],[[["s1","h0"],1,null,[0]],[["s1","h1"],2,null,[1]],[["s1","s0"],0,["s0",0],[2]]],2]]],[["s0",184483841],["s1",184483842]],[[[["allreduce",0]],[[512,[2199023321090,184483842,256,53248]],[513,[2199023321090,184483842,257,53249]],[514,[2199023321091,184483841,257,53250]]],[[["s0",0],[0,[[1,0,[2199023321089,184483841,256],[2199023321090,184483842,258],49152,false,null],[2,1,[2199023321089,184483841,257],[2199023321091,167772163,514],49153,true,null]],0,2,1,[["allreduce",0,null]],0,null,0]],[["s1",0],[0,[[1,1,[2199023321090,184483842,256],[2199023255553,167772161,512],49152,true,null],[2,2,[2199023321090,184483842,257],[2199023255554,167772162,513],49153,true,null],[3,0,[2199023321090,184483842,258],[2199023321089,184483841,256],49154,false,null]],0,2,1,[["allreduce",0,2]],0,2,0]]]]]]',42);
CREATE TABLE ports_down (switch TEXT NOT NULL, port INTEGER NOT NULL, PRIMARY KEY (switch, port)) STRICT;
INSERT INTO "ports_down" VALUES('s0',1);
CREATE TABLE slots (
    switch TEXT NOT NULL, pipe INTEGER NOT NULL, first INTEGER NOT NULL, end INTEGER NOT NULL, name TEXT NOT NULL,
    generation INTEGER NOT NULL, PRIMARY KEY (switch, pipe, first), UNIQUE (switch, pipe, end),
    FOREIGN KEY (name, generation) REFERENCES placements ON DELETE CASCADE
) STRICT;
INSERT INTO "slots" VALUES('s0',0,0,2,'g',3);
INSERT INTO "slots" VALUES('s1',0,0,2,'g',3);
INSERT INTO "slots" VALUES('s1',0,2,4,'g',3);
CREATE TABLE switches (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, info TEXT NOT NULL) STRICT;
INSERT INTO "switches" VALUES('s0',5,'["s0", "unix:/s0", {"mode": "III", "lanes": 8, "window": 1, "message": 1, "groups": 8, "fan_in": 8, "ports": 8}, "p4info", "009C61O)~M2nh-c3=Iws5D^j+6crX17#SKH9337XAR!_nBqb&%C@Cr{EG;fCFflSSG&MFiI5|2yJUu=?KtV!7L`6nNNJ&adOifNtP*GA-R8>}2SXo+ITwPvYU}0ioWMyV&XlZI|Y;A6DaB*^Tbai%jczJqze0_d@fPsR8goTEOh>41ejE#<ukdcy;l$Dm3n3<ZJoSmMZprN9pq@|{(sHv)}tgWuEu(7hUw6(UkxVgH!yuH4^z`?@9#Kp$P$jQpf%+1cv(9zP<)YaD4*xB0K+}+;a;Njxq<mKk)=;`X~?CtLF@bU8V^!4`l`1$(#{Qds_", 1, 510, [[0, "h0", "veth0"]]]');
CREATE INDEX contexts_of ON contexts (name, generation);
CREATE INDEX slots_of ON slots (name, generation);
COMMIT;
