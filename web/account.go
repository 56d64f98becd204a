package web

import "footfall/visit"

// Reader is who looks at a page. One without a name is nobody in particular.
type Reader struct {
	Name   string
	Owner  bool
	Leaves bool // they can sign out here, and not where a proxy lets them in
	// Settings is the path of what they may change, below the root; "": nothing.
	Settings string
}

type enterPage struct {
	frame
	To      string // where the reader wants to go
	Name    string // that was typed, or that of the account
	Problem string // with what was typed; "": nothing was yet
	First   bool   // there is no account yet
	Named   bool   // the account has a name
}

// SignIn makes the page on which a name and a password are typed, and which leads to another. first:
// nobody has an account yet.
func SignIn(p Place, to, name string, problem *visit.Error, first bool) Page {
	f := frame{Place: p, Title: p.say("layout.sign-in"), Home: p.Root + "/", entering: true}
	return render("enter", enterPage{frame: f, To: to, Name: name, Problem: p.fault(problem), First: first})
}

// Begin makes the page on which somebody who has followed a link chooses a password, and a name
// where the account has none. first: it is the first account.
func Begin(p Place, first bool, account, typed string, problem *visit.Error) Page {
	page := enterPage{frame: frame{Place: p, Title: p.say("begin.title")}, Name: typed, Problem: p.fault(problem), First: first}
	if page.Named = account != ""; page.Named {
		page.Name = account
	}
	return render("begin", page)
}

// Leave makes the page on which a reader signs out.
func Leave(p Place) Page {
	return render("leave", plainPage{frame: frame{Place: p, Title: p.say("layout.sign-out"), Home: p.Root + "/"}})
}
