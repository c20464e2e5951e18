// SPDX-License-Identifier: Apache-2.0

package cli

// Networks of a device.
const (
	networkXDP  = "xdp"
	networkUDP  = "udp"
	networkNone = "none" // in memory
)

// Network returns the network of a device with these modes of XDP and of its sockets.
func Network(xdp, socket string) string {
	switch {
	case socket == networkUDP:
		return networkUDP
	case xdp == "" || xdp == networkNone:
		return networkNone
	}
	return networkXDP
}

// Way describes the network of a device and its modes.
func Way(xdp, socket string) string {
	switch Network(xdp, socket) {
	case networkUDP:
		return "UDP sockets"
	case networkNone:
		return "in-memory network"
	}
	return "XDP " + xdp + ", AF_XDP " + socket
}
