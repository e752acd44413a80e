// Types whose values controllers write otherwise than the data plane has them: as wider numbers, and as strings.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("my.org/port", 32)
type bit<9> port_t;
@p4runtime_translation("", string)
type bit<10> vrf_t;
@p4runtime_translation("my.org/colour", string)
type bit<2> colour_t;

@controller_header("packet_in")
header packet_in_t { port_t port; colour_t colour; bit<5> pad; }
@controller_header("packet_out")
header packet_out_t { port_t port; colour_t colour; bit<5> pad; }
header frame_t { bit<8> vrf; bit<8> colour; bit<8> result; }
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; frame_t frame; }
struct metadata_t { vrf_t vrf; port_t port; colour_t colour; }
struct seen_t { vrf_t vrf; bit<8> result; }

const bit<9> CPU = 510;

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        meta.port = (port_t)std.ingress_port;
        transition select(std.ingress_port) {
            CPU: from_controller;
            default: from_port;
        }
    }
    state from_controller { packet.extract(hdr.packet_out); transition from_port; }
    state from_port { packet.extract(hdr.frame); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_profile(32w8) ways;

    action set_vrf(vrf_t vrf) { meta.vrf = vrf; }
    action forward(port_t port) { std.egress_spec = (bit<9>)port; }
    action paint(colour_t colour) { hdr.frame.colour = 6w0 ++ (bit<2>)colour; }
    action learn() { digest<seen_t>(1, { meta.vrf, hdr.frame.result }); }
    action drop() { mark_to_drop(std); }

    table vrfs {
        key = { meta.port: exact; }
        actions = { set_vrf; }
        const default_action = set_vrf((vrf_t)5);
    }
    table routes {
        key = { meta.vrf: exact; }
        actions = { forward; drop; }
        default_action = drop;
    }
    table painted {
        key = { meta.vrf: ternary; meta.port: ternary; }
        actions = { paint; NoAction; }
        default_action = NoAction;
    }
    table chosen {
        key = { meta.vrf: lpm; }
        actions = { paint; learn; NoAction; }
        implementation = ways;
        default_action = NoAction;
    }
    table ranged {
        key = { meta.vrf: range; meta.port: optional; }
        actions = { learn; NoAction; }
        default_action = NoAction;
    }
    table near {
        key = { meta.port: lpm; }
        actions = { paint; NoAction; }
        default_action = NoAction;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>)hdr.packet_out.port;
            hdr.frame.colour = 6w0 ++ (bit<2>)hdr.packet_out.colour;
            hdr.packet_out.setInvalid();
        } else {
            vrfs.apply();
            hdr.frame.result = ((bit<10>)meta.vrf)[7:0];
            routes.apply();
            painted.apply();
            chosen.apply();
            ranged.apply();
            near.apply();
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU) {
            hdr.packet_in.setValid();
            hdr.packet_in.port = meta.port;
            hdr.packet_in.colour = (colour_t)hdr.frame.colour[1:0];
            hdr.packet_in.pad = 0;
        }
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.packet_in); packet.emit(hdr.frame); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
