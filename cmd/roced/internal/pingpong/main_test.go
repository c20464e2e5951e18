// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
