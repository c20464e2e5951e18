// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/roced/roced/internal/tools"
)

func main() {
	output := flag.String("output", "dist/docs", "output `folder`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := build(ctx, *output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// build writes the site and checks its links.
func build(ctx context.Context, output string) error {
	if err := tools.Check("docs"); err != nil {
		return err
	}
	output, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "roced-docs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := fill(stage); err != nil {
		return err
	}
	if err := os.RemoveAll(output); err != nil {
		return err
	}
	hugo := exec.CommandContext(ctx, "hugo", "--quiet", "--source", stage, "--destination", output)
	hugo.Stdout, hugo.Stderr = os.Stdout, os.Stderr
	if err := hugo.Run(); err != nil {
		return fmt.Errorf("hugo: %w", err)
	}
	pages, links, err := checkLinks(output)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d pages, %d links checked\n", filepath.Join(output, "index.html"), pages, links)
	return nil
}
