"""Prints what scapy makes of each IPv4 RoCEv2 frame in a capture, a line a frame:
opcode, solicited, MigReq, pad, version, P_Key, destination QP, AckReq, PSN, TOS, TTL,
VLAN (0: none), and whether scapy builds the same bytes again with the lengths, the
IPv4 checksum and the ICRC left to it."""
import sys

from scapy.all import IP, UDP, Dot1Q, Ether, rdpcap
from scapy.contrib.roce import BTH

for packet in rdpcap(sys.argv[1]):
    frame = bytes(packet)
    packet = Ether(frame)
    bth, ip = packet[BTH], packet[IP]
    vlan = packet[Dot1Q].vlan if Dot1Q in packet else 0
    fields = [bth.opcode, bth.solicited, bth.migreq, bth.padcount, bth.version, bth.pkey, bth.dqpn, bth.ackreq, bth.psn,
              ip.tos, ip.ttl, vlan]
    ip.len = ip.chksum = packet[UDP].len = bth.icrc = None
    print(*fields, bytes(packet) == frame)
