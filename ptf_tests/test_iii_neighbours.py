"""ARP on a program of Mode III: the same as on one of Mode II."""

from __future__ import annotations

import test_neighbours as neighbours

from p4gen.papers.epic.spec import Mode


class Answered(neighbours.Neighbours):
    modes = (Mode.I, Mode.III)


class SwitchAnswersForItsAddresses(Answered):
    runTest = neighbours.SwitchAnswersForItsAddresses.runTest


class TaggedRequestIsAnsweredInItsVlan(Answered):
    runTest = neighbours.TaggedRequestIsAnsweredInItsVlan.runTest


class OthersAnswerForThemselves(Answered):
    runTest = neighbours.OthersAnswerForThemselves.runTest
