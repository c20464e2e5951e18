// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strings"
	"testing"

	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// TestSocketFlag: the flag accepts its value in both forms, and rejects values that are not paths.
func TestSocketFlag(t *testing.T) {
	for args, want := range map[string]string{
		"": client.DefaultPath, "--socket /a/b": "/a/b", "--socket=./b": "./b",
	} {
		if got, err := parse(args); err != nil || got != want {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
	for args, want := range map[string]string{
		"--socket": "needs an argument", "--socket 10.0.0.1": "must be the path of a socket", "--socket -j": "must be the path", "--socket=": "must be the path",
		"--socket none": "must be the path",
	} {
		if got, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}

// TestFormerFlags: earlier names of the flag are still accepted.
func TestFormerFlags(t *testing.T) {
	for _, args := range []string{"--service /a/b", "--daemon=/a/b"} {
		if got, err := parse(args); err != nil || got != "/a/b" {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}

// TestSocketOfTheEnvironment: ROCED_SOCKET is used if the flag is not set.
func TestSocketOfTheEnvironment(t *testing.T) {
	t.Setenv("ROCED_SOCKET", "/named/by/it")
	for args, want := range map[string]string{"": "/named/by/it", "--socket /a/b": "/a/b"} {
		if got, err := parse(args); err != nil || got != want {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}

func parse(args string) (string, error) {
	var f Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(set)
	err := set.Parse(strings.Fields(args))
	return f.Socket, err
}
