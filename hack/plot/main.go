// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	folder := flag.String("docs", "../../docs", "folder with bench.json, for the drawings too")
	flag.Parse()
	if err := run(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	drawings, err := drawAll(folder)
	if err != nil {
		return err
	}
	for name, svg := range drawings {
		if err := os.WriteFile(filepath.Join(folder, name), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawAll gives all drawings of a folder's bench.json, by their file's name.
func drawAll(folder string) (drawings map[string][]byte, err error) {
	f, err := readRecords(filepath.Join(folder, "bench.json"))
	if err != nil {
		return nil, err
	}
	drawings = map[string][]byte{}
	for name, figureOf := range map[string]func(*records) (*figure, error){
		"rates.svg": rates, "fanout.svg": fanOut, "latency.svg": latency, "receive.svg": receive,
		"requests.svg": requests, "waiting.svg": waiting, "connections.svg": connections, "service.svg": service,
	} {
		figure, err := figureOf(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if drawings[name], err = figure.svg(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return drawings, nil
}
