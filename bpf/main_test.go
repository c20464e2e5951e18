// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childVariable)]; run != nil {
		run()
		os.Exit(0)
	}
	labtest.Main(m)
}
