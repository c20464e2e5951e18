// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"os"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/waittest"
)

var (
	check      = errtest.Check
	eventually = waittest.Eventually
)

// childVariable makes the test binary run one of children instead of the tests.
const childVariable = "ROCED_PEER_CHILD"

// children are other processes. Each gets the path of a socket.
var children = map[string]func(path string) error{"connects": connects, "moves": moves, "comes": comes}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		if err := child(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
