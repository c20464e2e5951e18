// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// Model is an emulated network card whose driver supports AF_XDP zero-copy.
type Model string

// Models with zero-copy in both directions since Linux 6.14.
const (
	Virtio Model = "virtio-net-pci"
	IGB    Model = "igb"
)

// Models contains all models.
var Models = []Model{Virtio, IGB}

// Card is a network card of a guest.
type Card struct {
	Model Model
	Tap   string // interface with this number of queues, see lab.TapQueues
	// Queues is the number of queue pairs. It does not apply to igb, whose driver sets the number, on a TAP with one
	// queue.
	Queues int
}

// MAC returns the address of a guest's card.
func MAC(guest string, card int) net.HardwareAddr {
	return mac(fmt.Sprintf("%s card %d", guest, card))
}

// cards returns the emulator's arguments for the guest's cards.
func (c *Config) cards(netOptions string) (args []string) {
	if len(c.Cards) == 0 && c.Tap == "" {
		return nil
	}
	if len(c.Cards) == 0 {
		return []string{
			"-netdev", "tap,id=net,script=no,downscript=no,ifname=" + c.Tap,
			"-device", fmt.Sprintf("virtio-net-pci,netdev=net,mac=%s,host_mtu=%d,%s", mac(c.Name), c.MTU, netOptions),
		}
	}
	for i, card := range c.Cards {
		args = append(args,
			"-netdev", fmt.Sprintf("tap,id=net%d,script=no,downscript=no,vhost=off,ifname=%s%s", i, card.Tap, card.queues()),
			"-device", fmt.Sprintf("pcie-root-port,id=port%d,chassis=%d", i, i+1), // igb has virtual functions, which require a bus
			"-device", fmt.Sprintf("%s,netdev=net%d,bus=port%[2]d,mac=%s%s", card.Model, i, MAC(c.Name, i), card.options()))
	}
	return args
}

func (c Card) queues() string {
	if c.Queues < 2 {
		return ""
	}
	return fmt.Sprintf(",queues=%d", c.Queues)
}

// options returns the options that the driver requires for zero-copy. virtio_net requires DMA addresses of the kernel's
// DMA layer (iommu_platform, which requires the modern interface), and no vhost.
func (c Card) options() string {
	if c.Model != Virtio {
		return ",romfile="
	}
	options := ",disable-legacy=on,iommu_platform=on," + wireOptions + ",guest_uso4=off,guest_uso6=off,host_uso=off"
	if c.Queues > 1 {
		options += fmt.Sprintf(",mq=on,vectors=%d", 2*c.Queues+2)
	}
	return options
}

// emulator returns the command of the emulator: the image's, or this host's if the image has none.
func (c *Config) emulator(ctx context.Context, args []string) *exec.Cmd {
	if c.Arch == "arm64" {
		return exec.CommandContext(ctx, "qemu-system-aarch64", args...)
	}
	folder := filepath.Join(c.Image, "qemu/usr")
	if _, err := os.Stat(folder); err != nil {
		return exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	}
	data := []string{"-L", filepath.Join(folder, "share/qemu"), "-L", "/usr/share/seabios", "-L", "/usr/share/qemu"}
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "bin/qemu-system-x86_64"), append(data, args...)...)
	cmd.Env = append(os.Environ(), "QEMU_MODULE_DIR="+filepath.Join(folder, "lib/x86_64-linux-gnu/qemu"))
	return cmd
}
