// Package xsk opens AF_XDP sockets: rings that the kernel and this process share, to receive and
// send Ethernet frames without a copy into Go memory.
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
// A Socket has its own UMEM, the memory of all its frames. A chunk for receiving is in the fill
// ring (and belongs to the kernel), in the RX ring, or borrowed between Receive and Release. A slot
// for sending is free, Reserved (and belongs to the caller), or in flight from Submit until its
// completion. The two parts of the UMEM are separate: an address from the kernel is checked to be
// in the right part.
//
// Open is Prepare, which makes everything, and Bind, which takes the queue.
//
// One goroutine owns a Socket and alone calls its methods; receiving and sending take no lock.
// Other goroutines may call FD and Attached while the socket is open, and Stats at any time. The
// one lock is for Stats and Close. An index is published once per burst, because an atomic store in
// Go is an exchange, which costs as much as handling a frame.
//
// Left out: attaching an XDP program and filling its XSKMAP (which needs only FD), UMEMs shared
// between sockets, unaligned chunks, transmit metadata. veth has no zero-copy: that is tested over
// virtio_net and igb in virtual machines (hack/interop/kernels -zerocopy; build tag cards).
// See Documentation/networking/af_xdp.rst in the kernel.
package xsk
