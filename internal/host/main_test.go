package host

import (
	"testing"

	"github.com/roced/roced/hack/netlab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
