------------------------------- MODULE Network -------------------------------
(***************************************************************************)
(* Switches, ranks and links, each a non-deterministic automaton (EPIC,    *)
(* section 5.1).  Module Parts says what every part does in each of its    *)
(* states: p4gen has read it off the generated P4 program and the hosts.   *)
(* This module puts the parts together, and lets the network lose, double, *)
(* delay and corrupt packets, within a budget.                             *)
(***************************************************************************)
EXTENDS Parts, Integers, Sequences, Bags

VARIABLES
  switch,   \* By switch: the number of its state, an index of Registers
  rank,     \* By rank: the number of its state, an index of Timers
  link,     \* By link: packets in order, the oldest first, and late ones
  budget,   \* How often the network may still commit each fault
  violated  \* The property that a step has violated; "" if none has

vars == <<switch, rank, link, budget, violated>>

Init ==
  /\ switch = FirstSwitch
  /\ rank = FirstRank
  /\ link = [l \in DOMAIN FirstLink |-> [order |-> FirstLink[l], late |-> EmptyBag]]
  /\ budget = Budget
  /\ violated = ""

Quiet == \A l \in DOMAIN link : link[l].order = <<>>

Ended == \A r \in DOMAIN rank : rank[r] \in Done[r]

Spend(fault) == budget[fault] > 0 /\ budget' = [budget EXCEPT ![fault] = @ - 1]

----------------------------------------------------------------------------

Sent(links, sends) ==
  [l \in DOMAIN links |->
    IF l \in DOMAIN sends THEN [links[l] EXCEPT !.order = @ \o sends[l]] ELSE links[l]]

(* The part goes into the state of the effect, whose packets follow those on the links. *)
Have(part, number, effect, links) ==
  /\ switch' = IF part = "switch" THEN [switch EXCEPT ![number] = effect.goes] ELSE switch
  /\ rank' = IF part = "rank" THEN [rank EXCEPT ![number] = effect.goes] ELSE rank
  /\ link' = Sent(links, effect.sends)

Effects(l, packet, steps) ==
  LET to == To[l]
      state == IF to.part = "switch" THEN switch[to.number] ELSE rank[to.number]
  IN  Effect[steps[l][state][packet]]

(* A packet arrives at the part at the end of the link. *)
Arrives(l, packet, rest, steps) ==
  LET effect == Effects(l, packet, steps)
  IN  /\ Have(To[l].part, To[l].number, effect, [link EXCEPT ![l] = rest])
      /\ violated' = effect.violates

(* While nothing has gone wrong, no packet may be dropped, and none sent again. *)
Untouched == [budget EXCEPT !.forgeries = 0] = [Budget EXCEPT !.forgeries = 0]

Oldest(l) == Head(link[l].order)

Rest(l) == [link[l] EXCEPT !.order = Tail(@)]

Later(l) == [Rest(l) EXCEPT !.late = @ (+) SetToBag({Oldest(l)})]

Deliver(l) ==
  /\ link[l].order # <<>>
  /\ LET effect == Effects(l, Oldest(l), Arrive)
     IN  /\ Have(To[l].part, To[l].number, effect, [link EXCEPT ![l] = Rest(l)])
         /\ violated' =
              IF effect.violates = "" /\ Strict /\ Untouched THEN effect.wastes ELSE effect.violates
  /\ UNCHANGED budget

Lose(l) ==
  /\ link[l].order # <<>>
  /\ Spend("losses")
  /\ link' = [link EXCEPT ![l] = Rest(l)]
  /\ UNCHANGED <<switch, rank, violated>>

Duplicate(l) ==
  /\ link[l].order # <<>>
  /\ Spend("duplicates")
  /\ Arrives(l, Oldest(l), Later(l), Arrive)

Delay(l) ==
  /\ link[l].order # <<>>
  /\ Spend("delays")
  /\ link' = [link EXCEPT ![l] = Later(l)]
  /\ UNCHANGED <<switch, rank, violated>>

DeliverLate(l) ==
  /\ \E packet \in BagToSet(link[l].late) :
       Arrives(l, packet, [link[l] EXCEPT !.late = @ (-) SetToBag({packet})], Arrive)
  /\ UNCHANGED budget

Corrupt(l) ==
  /\ link[l].order # <<>>
  /\ Spend("corruptions")
  /\ Arrives(l, Oldest(l), Rest(l), ArriveCorrupt)

Forge ==
  /\ Spend("forgeries")
  /\ \E packet \in Forged : Arrives(ForgingLink, packet, link[ForgingLink], Arrive)

(* Timers expire when no packet is on its way in order; a few may expire early. *)
Patience == IF Quiet THEN UNCHANGED budget ELSE Spend("timeouts")

RankTimeout(r) ==
  \E timer \in DOMAIN Expire[r][rank[r]] :
    LET effect == Effect[Expire[r][rank[r]][timer]]
    IN  Patience /\ Have("rank", r, effect, link) /\ violated' = effect.violates

SwitchTimeout(t) ==
  LET s == TickAt[t]
      number == Tick[t][switch[s]]
  IN  /\ number # 0
      /\ Patience
      /\ Have("switch", s, Effect[number], link)
      /\ violated' = Effect[number].violates

Next ==
  \/ \E l \in DOMAIN link :
       Deliver(l) \/ Lose(l) \/ Duplicate(l) \/ Delay(l) \/ DeliverLate(l) \/ Corrupt(l)
  \/ Forge
  \/ \E r \in DOMAIN rank : RankTimeout(r)
  \/ \E t \in DOMAIN TickAt : SwitchTimeout(t)
  \/ Quiet /\ Ended /\ UNCHANGED vars

----------------------------------------------------------------------------

(* Every rank has NumPy's result, and no call ends with an error. *)
Accuracy == violated # "results"

(* The other properties of single steps: docs/verification.md has a table of them. *)
Rules == violated \in {"", "results"}

(* What is missing, and can be known to be, is repaired without a timer. *)
Prompt ==
  Quiet => CASE Repair = "prompt" -> /\ \A s \in DOMAIN switch : switch[s] \notin SwitchWaits[s]
                                     /\ \A r \in DOMAIN rank : rank[r] \notin RankWaits[r]
             [] Repair = "never needed" -> Ended
             [] OTHER -> TRUE

(* Nothing can happen any more, and no lock is left. *)
Stopped ==
  /\ Quiet /\ Ended /\ budget.forgeries = 0
  /\ \A l \in DOMAIN link : link[l].late = EmptyBag
  /\ \A r \in DOMAIN rank : Expire[r][rank[r]] = <<>>
  /\ \A t \in DOMAIN TickAt : Tick[t][switch[TickAt[t]]] = 0

Unlocked == Stopped => \A s \in DOMAIN switch : switch[s] \notin Locked[s]

(* A packet on a link arrives at last, and so does the end of a timer. *)
Fairness ==
  /\ \A l \in DOMAIN To : WF_vars(Deliver(l))
  /\ \A r \in DOMAIN FirstRank : SF_vars(RankTimeout(r))
  /\ \A t \in DOMAIN TickAt : SF_vars(SwitchTimeout(t))

Spec == Init /\ [][Next]_vars /\ Fairness

Liveness == <>[](Quiet /\ Ended)

(* A state in words, for counterexamples. *)
Shown ==
  [ switches |-> [s \in DOMAIN switch |-> [name |-> SwitchName[s], registers |-> Registers[s][switch[s]]]],
    ranks |-> [r \in DOMAIN rank |-> [name |-> RankName[r], timers |-> Timers[r][rank[r]]]],
    links |-> [l \in {each \in DOMAIN link : link[each] # [order |-> <<>>, late |-> EmptyBag]} |->
      [ name |-> LinkName[l],
        order |-> [i \in DOMAIN link[l].order |-> Packet[link[l].order[i]]],
        late |-> {Packet[packet] : packet \in BagToSet(link[l].late)} ]],
    budget |-> budget,
    violated |-> violated ]
=============================================================================
