// SPDX-License-Identifier: Apache-2.0

// Package xsk implements AF_XDP sockets, which receive and send Ethernet frames through rings that the kernel and this
// process share, without a copy into Go memory.
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
// A Socket has its own UMEM, the memory of all its frames. A chunk for receiving is in the fill ring (owned by the
// kernel), in the RX ring, or borrowed between Receive and Release. A slot for sending is free, reserved (owned by the
// caller), or in flight from Submit until its completion. The UMEM has separate parts for receiving and sending, and
// each address from the kernel is checked to be in the correct part.
//
// Open combines Prepare, which creates the socket, the UMEM and the rings, and Bind, which binds the socket to a queue.
//
// One goroutine owns a Socket and is the only caller of its methods; receiving and sending use no lock. Other
// goroutines may call FD and Attached while the socket is open, and Stats at any time. The only lock is for Stats and
// Close. An index is published once per burst, because an atomic store in Go is an exchange instruction, which takes as
// long as the processing of a frame.
//
// The package does not attach an XDP program or fill its XSKMAP (which needs only FD). It does not support UMEMs shared
// between sockets, unaligned chunks, or transmit metadata. veth has no zero-copy mode, so zero-copy is tested with
// virtio_net and igb in virtual machines (hack/interop/kernels -zerocopy; build tag cards). See
// Documentation/networking/af_xdp.rst in the kernel.
package xsk
