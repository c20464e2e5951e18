//go:build linux

package nic

import "github.com/roced/roced/bpf"

// Attached says which XDP program takes the packets of an interface, in the namespace of a file, before its sockets get
// them; empty if none does, or it is not known. steering says that it is another card's; without CAP_SYS_ADMIN that
// is not known either, and false.
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
