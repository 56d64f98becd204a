package web

import "footfall/visit"

// Reader is the person who looks at a page. Name is "" if this person is not signed in.
type Reader struct {
	Name   string
	Owner  bool
	Leaves bool // the page has a link to sign out; false if a proxy signs the reader in
	// Settings is the path of the settings page that the page links to, without Place.Root. It is "" if there is no link.
	Settings string
}

type enterPage struct {
	frame
	To      string // path to open after signing in
	Name    string // name shown in the form: the typed name, or the account's name
	Problem string // error in the submitted form, or ""
	First   bool   // no account exists yet
	Named   bool   // the account already has a name, so the user cannot choose one
}

// SignIn makes the sign-in page. to is the path that opens after signing in. first is true if no account exists yet.
func SignIn(p Place, to, name string, problem *visit.Error, first bool) Page {
	f := frame{Place: p, Title: p.say("layout.sign-in"), Home: p.Root + "/", entering: true}
	return render("enter", enterPage{frame: f, To: to, Name: name, Problem: p.errorText(problem), First: first})
}

// Begin makes the page where a user chooses a password, after following an invitation or a link to set a new password. account is
// the account's name. If account is "", the user also chooses a name, and typed is the name in the form. first is true for the
// first account of the service.
func Begin(p Place, first bool, account, typed string, problem *visit.Error) Page {
	page := enterPage{frame: frame{Place: p, Title: p.say("begin.title")}, Name: typed, Problem: p.errorText(problem), First: first}
	if page.Named = account != ""; page.Named {
		page.Name = account
	}
	return render("begin", page)
}

// Leave makes the sign-out page.
func Leave(p Place) Page {
	return render("leave", plainPage{frame: frame{Place: p, Title: p.say("layout.sign-out"), Home: p.Root + "/"}})
}
