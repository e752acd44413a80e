"""Traffic that no endpoint of a Mode III switch claims is routed as IPv4, whatever it is."""

from __future__ import annotations

import test_forwarding as forwarding

from p4gen.papers.epic.spec import Mode


class Routed(forwarding.Routing):
    """A scenario of Mode II's, on a program of Mode III; PTF would take a subclass's base for one, too."""

    modes = (Mode.I, Mode.III)


class PlainIpIsRouted(Routed):
    runTest = forwarding.PlainIpIsRouted.runTest


class ShortFramesKeepTheirPadding(Routed):
    runTest = forwarding.ShortFramesKeepTheirPadding.runTest


class IpOptionsAreRouted(Routed):
    runTest = forwarding.IpOptionsAreRouted.runTest


class FragmentsAreRouted(Routed):
    runTest = forwarding.FragmentsAreRouted.runTest


class EveryTtlAndChecksum(Routed):
    runTest = forwarding.EveryTtlAndChecksum.runTest


class ExpiredTtlIsDropped(Routed):
    runTest = forwarding.ExpiredTtlIsDropped.runTest


class NoRouteIsCounted(Routed):
    runTest = forwarding.NoRouteIsCounted.runTest


class NotIpIsCounted(Routed):
    runTest = forwarding.NotIpIsCounted.runTest


class LongestPrefixWins(Routed):
    runTest = forwarding.LongestPrefixWins.runTest


class EqualPathsAreUsedByFlow(Routed):
    runTest = forwarding.EqualPathsAreUsedByFlow.runTest


class FlowsAreToldApartByEveryField(Routed):
    runTest = forwarding.FlowsAreToldApartByEveryField.runTest


class ForeignRoceIsUntouched(Routed):
    runTest = forwarding.ForeignRoceIsUntouched.runTest


class WrongIpChecksumStaysWrong(Routed):
    runTest = forwarding.WrongIpChecksumStaysWrong.runTest
