// Package deviceplugin is the device plugin of roced.dev/verbs: it tells the kubelet how many sockets the node has for
// containers, and makes the socket of each container that asks for one.
//
//	run.go        registering, and doing so again when the kubelet was started anew
//	plugin.go     what the kubelet asks: the list, an allocation, before a start
//	health.go     whether the service answers
//
//	kubelet ── roced.sock ── Plugin ── AddSocket, RemoveSocket ── roced's service
//
// A device is a name: of the kubelet's device, of the service's socket, of the CDI device. The kubelet does not say when
// a container has gone. So its socket stays until the device is given to another: then the old socket, its folder and
// connections by it go, and there is a new one. Until then nobody reaches it, since the only way is the container's
// mount, and what its programs had went with them. There are never more sockets than devices.
package deviceplugin
