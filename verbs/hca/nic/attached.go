// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import "github.com/roced/roced/bpf"

// Attached returns the XDP program that receives the packets of an interface before its sockets do, in the namespace of
// a file; empty if there is no such program or it is unknown. steering is true if it belongs to another card; without
// CAP_SYS_ADMIN that is unknown, and steering is false.
func Attached(name, namespace string) (program string, steering bool) {
	_ = inNamespace(namespace, func(b *builder) error {
		b.name = name
		if err := b.findLink(); err != nil {
			return err
		}
		program, steering = bpf.Attached(b.base)
		return nil
	})
	return program, steering
}
