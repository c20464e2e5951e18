// SPDX-License-Identifier: Apache-2.0

// Package manifests contains roced's Kubernetes objects for kustomize, and their tests.
//
//	base                       the service and the device plugin on each node
//	overlays/loopback          an in-memory network on each node
//	overlays/xdp               with a card on each pod's own interface
//	overlays/udp               no DaemonSet: a service in the pod, over UDP sockets
//	overlays/dra               claims instead of the device plugin's resource
//	components/networkpolicy   lets RoCEv2 through
//	components/podmonitor      metrics, for the Prometheus operator
//	example                    two pods that use the DaemonSet's network
package manifests
