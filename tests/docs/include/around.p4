// What surrounds the ingress of the programs here.
parser P(packet_in packet, out headers_t hdr, METADATA) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control E(inout headers_t hdr, METADATA) { apply { } }
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
