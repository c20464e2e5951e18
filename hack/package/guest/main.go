// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/roced/roced/internal/tools"
)

//go:embed guest.sh
var guestScript []byte

// machineTime is the time limit of the guest.
const machineTime = 15 * time.Minute

func main() {
	log := flag.Bool("v", false, "print the guest's output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := test(ctx, *log)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "package test:", err)
		os.Exit(1)
	}
}

func test(ctx context.Context, log bool) error {
	if os.Geteuid() != 0 {
		return errors.New("building a file system with owners requires root")
	}
	if err := tools.Check("test-package"); err != nil {
		return err
	}
	if err := makeImage(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "roced-package-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	share := filepath.Join(dir, "share")
	if err := fill(ctx, dir, share); err != nil {
		return err
	}
	failed := boot(ctx, dir, share)
	if said, err := os.ReadFile(filepath.Join(share, "log")); err == nil && (log || failed != nil) {
		fmt.Printf("%s\n", said)
	}
	result, err := os.ReadFile(filepath.Join(share, "result"))
	return errors.Join(failed, err, judge(string(result)))
}

// fill creates the files that the guest mounts under /host.
func fill(ctx context.Context, dir, share string) error {
	if err := os.Mkdir(share, 0o755); err != nil {
		return err
	}
	for i, version := range []string{"1.0.0", "1.0.1"} {
		if err := run(ctx, "go", "run", "./hack/package", "-version", version, "-formats", "deb", "-output", dir); err != nil {
			return err
		}
		made := filepath.Join(dir, "roced_"+version+"_amd64.deb")
		if err := os.Rename(made, filepath.Join(share, fmt.Sprintf("v%d.deb", i+1))); err != nil {
			return err
		}
	}
	return errors.Join(
		run(ctx, "env", "CGO_ENABLED=0", "go", "build", "-o", filepath.Join(share, "client"), "./hack/package/guest/client"),
		os.WriteFile(filepath.Join(share, "guest.sh"), guestScript, 0o755),
		run(ctx, "cp", "--sparse=always", filepath.Join(imageDir, "root.img"), filepath.Join(dir, "root.img")),
	)
}

// kernelOptions makes the kernel trust the emulated clock, and shortens the boot.
const kernelOptions = "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off tsc=reliable no_timer_check quiet"

// boot runs the machine until it powers off. It has no network.
func boot(ctx context.Context, dir, share string) error {
	ctx, cancel := context.WithTimeout(ctx, machineTime)
	defer cancel()
	console := filepath.Join(dir, "console")
	err := run(ctx, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-nic", "none",
		"-machine", "q35,accel=tcg,usb=off", "-cpu", "max,-erms,-fsrm", "-m", "1536", "-smp", "2",
		"-kernel", filepath.Join(imageDir, "vmlinuz"), "-initrd", filepath.Join(imageDir, "initrd"), "-append", kernelOptions,
		"-drive", "file="+filepath.Join(dir, "root.img")+",if=virtio,format=raw,cache=unsafe",
		"-virtfs", "local,mount_tag=host,security_model=none,path="+share, "-serial", "file:"+console)
	if err != nil {
		text, _ := os.ReadFile(console)
		return fmt.Errorf("%w; end of the console output:\n%s", err, text[max(0, len(text)-2000):])
	}
	return nil
}

// judge prints the checks, and returns an error unless all passed and the script reached its end.
func judge(result string) error {
	passed, failed := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(result), "\n") {
		switch {
		case strings.HasPrefix(line, "PASS "):
			passed++
		case strings.HasPrefix(line, "FAIL "):
			failed++
		}
		fmt.Println(line)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d checks failed", failed, passed+failed)
	case !strings.HasSuffix(strings.TrimSpace(result), "\nend"):
		return fmt.Errorf("the guest did not reach the end, after %d checks", passed)
	}
	fmt.Println(passed, "checks passed")
	return nil
}

func run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}
