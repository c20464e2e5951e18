// Package xsk opens AF_XDP sockets: rings that the kernel and this process share,
// through which whole Ethernet frames come and go without a copy into Go memory.
//
//	                    Socket (one queue of one interface)
//	     Receive  ◄── RX ring ◄─────────┐      ┌──────── TX ring ◄── Submit, Flush
//	        │                           │      ▼                       ▲
//	  bytes borrowed                  ┌──────────┐               bytes reserved
//	        │                         │  kernel  │                     ▲
//	        ▼                         └──────────┘                     │
//	     Release ──► fill ring ─────────▲      └──► completion ring ─► Reserve
//
//	UMEM  │ chunk │ chunk │ chunk … for receiving │ slot │ slot … for sending │
//	                                                └ as many chunks as MaxFrame needs
//
// A Socket has its own UMEM, the memory in which all its frames lie. A chunk for
// receiving is in the fill ring (the kernel's), in the RX ring, or borrowed between
// Receive and Release. A slot for sending is free, Reserved (the caller's), or in
// flight from Submit until the completion ring gives it back. The two never mix: an
// address that the kernel hands out is checked against its own part of the UMEM.
//
// One goroutine owns a Socket and alone calls its methods; there is no lock in the
// data path. Others may call FD and Attached while the socket is open, and Stats at
// any time: Stats and Close share the one lock. An index is published once per burst,
// since in Go an atomic store is an exchange and costs as much as handling a frame.
//
// Left out: attaching an XDP program and filling its XSKMAP (that needs FD alone),
// UMEMs shared between sockets, unaligned chunks, transmit metadata. Zero-copy is
// built after the kernel's documentation but no test covers it: veth has none.
// See Documentation/networking/af_xdp.rst in the kernel.
package xsk
