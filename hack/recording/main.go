// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// commands are those of README.md, to be run in the root of the repository.
var commands = []string{
	"go run ./cmd/roced demo",
	"./roced exec -- sh -c 'ib_write_bw & sleep 1; ib_write_bw localhost'",
}

func main() {
	output := flag.String("output", "docs/terminal.svg", "`file` to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, output string) error {
	prompt := "$ "
	if os.Geteuid() == 0 {
		prompt = "# "
	}
	var f film
	for _, command := range commands {
		lines, err := record(ctx, command)
		if err != nil {
			return err
		}
		f.add(prompt, command, lines)
	}
	f.end(prompt)
	svg, err := f.svg()
	if err != nil {
		return err
	}
	return os.WriteFile(output, svg, 0o644)
}
