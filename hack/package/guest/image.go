// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// imageDir is the folder of the guest's file system: 1.5 GB, a third of it in use.
const imageDir = "/var/tmp/roced-package"

// inside lists the guest's additional packages.
const inside = "systemd-sysv,dbus,udev,linux-image-amd64,initramfs-tools,iproute2,kmod,init-system-helpers,procps"

// unit runs guest.sh at each boot. It starts early, so that it can reboot without waiting for other units.
const unit = `[Unit]
After=basic.target
[Service]
Type=exec
ExecStart=/bin/sh -c 'modprobe 9pnet_virtio; modprobe 9p; mount -t 9p -o trans=virtio,version=9p2000.L host /host; exec /bin/sh /host/guest.sh >>/host/log 2>&1'
[Install]
WantedBy=multi-user.target
`

// makeImage builds the guest's disk, kernel and initial file system, unless they exist. The last step creates the file
// that marks them as complete.
func makeImage(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(imageDir, "made")); err == nil {
		return nil
	}
	if err := os.MkdirAll(imageDir, 0o755); err != nil {
		return err
	}
	root, err := os.MkdirTemp(imageDir, "root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	unitFile := filepath.Join(imageDir, "guest-test.service")
	if err := os.WriteFile(unitFile, []byte(unit), 0o644); err != nil {
		return err
	}
	for _, step := range [][]string{
		{"mmdebstrap", "--variant=minbase", "--include=" + inside, "--aptopt=Acquire::Languages \"none\"",
			"--customize-hook=mkdir $1/host; echo '/dev/vda / ext4 defaults 0 1' >$1/etc/fstab; echo roced-test >$1/etc/hostname",
			"--customize-hook=copy-in " + unitFile + " /etc/systemd/system",
			"--customize-hook=chroot $1 systemctl enable guest-test.service",
			"bookworm", root},
		{"sh", "-c", fmt.Sprintf("cp %s/boot/vmlinuz* %s/vmlinuz && cp %[1]s/boot/initrd* %[2]s/initrd", root, imageDir)},
		{"mke2fs", "-q", "-F", "-t", "ext4", "-d", root, filepath.Join(imageDir, "root.img"), "1500M"},
	} {
		if err := run(ctx, step...); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(imageDir, "made"), nil, 0o644)
}
