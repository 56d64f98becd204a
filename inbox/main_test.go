package inbox

import (
	"testing"

	"footfall/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
