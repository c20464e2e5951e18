package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/roced/roced/hack/interop/vm"
)

func main() {
	kernel := flag.String("kernel", "arm64-stable", "")
	share := flag.String("share", "", "folder that the guest sees as /host")
	script := flag.String("script", "", "shell script to run in the guest")
	limit := flag.Duration("timeout", 10*time.Minute, "time for it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := vm.Kernel(*kernel)
	image, err := vm.Image(ctx, k, os.Stderr)
	if err != nil {
		panic(err)
	}
	start := time.Now()
	guest, err := vm.Boot(ctx, vm.Config{Name: "guest", Image: image, Arch: k.Arch(), Memory: 3072, CPUs: 2, Share: *share, NoRXE: true})
	if err != nil {
		panic(err)
	}
	defer guest.Close()
	fmt.Println("booted in", time.Since(start))
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	start = time.Now()
	out, err := guest.Run(ctx, *script)
	fmt.Println(out)
	fmt.Println(err, "after", time.Since(start))
}
