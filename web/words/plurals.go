package words

// plurals contains a function for each language. It returns the plural category of a number according to CLDR 48: one, many or
// other. whole is false for numbers with a fraction.
var plurals = map[string]func(n int64, whole bool) string{
	"en": oneOrOther, "de": oneOrOther, "fr": french, "es": spanish, "zh": other, "ja": other, "ko": other,
}

func other(int64, bool) string { return "other" }

func oneOrOther(n int64, whole bool) string {
	if n == 1 && whole {
		return "one"
	}
	return "other"
}

func french(n int64, whole bool) string {
	if n == 0 || n == 1 {
		return "one"
	}
	return manyOrOther(n, whole)
}

func spanish(n int64, whole bool) string {
	if n == 1 && whole {
		return "one"
	}
	return manyOrOther(n, whole)
}

// manyOrOther returns "many" for multiples of a million, because French and Spanish put “de” between such a number and its noun.
func manyOrOther(n int64, whole bool) string {
	if n != 0 && n%1_000_000 == 0 && whole {
		return "many"
	}
	return "other"
}
