package daemon

import (
	"strings"
	"testing"

	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// TestSocketFlag: it takes a value in both ways of writing, and nothing else for one.
func TestSocketFlag(t *testing.T) {
	for args, want := range map[string]string{
		"": client.DefaultPath, "--service /a/b": "/a/b", "--service=./b": "./b",
	} {
		if got, err := parse(args); err != nil || got != want {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
	for args, want := range map[string]string{
		"--service": "needs an argument", "--service 10.0.0.1": "write the path of a socket", "--service -j": "write the path", "--service=": "write the path",
		"--service none": "write the path",
	} {
		if got, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
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
