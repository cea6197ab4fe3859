package pipe

import "testing"

// Values of a level have one order, also those that are no levels.
func TestOrderOfLevels(t *testing.T) {
	t.Parallel()
	var values []Value
	for _, text := range []string{"ERROR", "INFO", "KILO", "WARN", "absent", "info", "zulu", ""} {
		values = append(values, Value{String, []byte(text)})
	}
	for _, text := range []string{"7", "-4", "1e3"} {
		values = append(values, Value{Number, []byte(text)}, Value{String, []byte(text)})
	}
	values = append(values, Value{Other, []byte("null")}, Value{})
	for _, a := range values {
		for _, b := range values {
			ab := compareLevels(a, b)
			if ab != -compareLevels(b, a) {
				t.Fatalf("%s and %s come before each other", a.Text, b.Text)
			}
			for _, c := range values {
				if bc := compareLevels(b, c); ab <= 0 && bc <= 0 && compareLevels(a, c) != min(ab, bc) {
					t.Fatalf("%s, %s and %s have no order", a.Text, b.Text, c.Text)
				}
			}
		}
	}
}
