package words

// plurals choose the form of a text by a number, in the categories of CLDR 48; whole: it has no
// fraction.
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

// manyOrOther tells whole millions, which take “de”, from others.
func manyOrOther(n int64, whole bool) string {
	if n != 0 && n%1_000_000 == 0 && whole {
		return "many"
	}
	return "other"
}
