package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"footfall/admin"
	"footfall/db"
	"footfall/db/cells"
)

type (
	cellAddCmd struct {
		Name string `arg:""`
		On   string `placeholder:"HOST:PORT"`
	}
	cellListCmd struct{}
	cellMoveCmd struct {
		Name string `arg:""`
		To   string `required:"" placeholder:"HOST:PORT"`
	}
	cellMoveAppCmd struct {
		App  string `arg:"" name:"app"`
		To   string `required:"" placeholder:"CELL"`
		From string `placeholder:"URL"`
	}
	cellDropCmd struct {
		Name string `arg:""`
		confirmed
	}
	nodeAddCmd struct {
		Node string `arg:""`
	}
	nodeReplaceCmd struct {
		Old string `arg:""`
		New string `arg:""`
	}
	nodeRemoveCmd struct {
		Node string `arg:""`
		To   string `placeholder:"HOST:PORT"`
	}
)

const badCellName = "%s: %q is not a valid name of a cell: write up to 40 of a–z, 0–9 and _"

var cellName = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,39}$`)

// checkCluster validates the cluster's URL, the addresses of nodes, and a cell's name, unless the name is "".
func checkCluster(g globals, name string, nodes ...string) (f faults) {
	_, err := cells.OpenCluster(g.DatabaseURL, db.Options{})
	f.addIf(err != nil, "--database-url: %w", err)
	f.addIf(name != "" && !cellName.MatchString(name), badCellName, "name", name)
	for _, node := range nodes {
		_, err := cells.ParseNode(node)
		f.add(err)
	}
	return f
}

func (c *cellAddCmd) check(g globals) faults {
	if c.On == "" {
		return checkCluster(g, c.Name)
	}
	return checkCluster(g, c.Name, c.On)
}

func (*cellListCmd) check(g globals) faults   { return checkCluster(g, "") }
func (c *cellMoveCmd) check(g globals) faults { return checkCluster(g, c.Name, c.To) }
func (c *cellMoveAppCmd) check(g globals) faults {
	f := checkCluster(g, "")
	f.addIf(!cellName.MatchString(c.To), badCellName, "--to", c.To)
	return f
}

func (c *cellDropCmd) check(g globals) faults { return checkCluster(g, c.Name) }
func (c *nodeAddCmd) check(g globals) faults  { return checkCluster(g, "", c.Node) }

func (c *nodeReplaceCmd) check(g globals) faults {
	f := checkCluster(g, "", c.Old, c.New)
	f.addIf(c.Old == c.New, "%s cannot be replaced by itself: name the standby that was promoted", c.Old)
	return f
}

func (c *nodeRemoveCmd) check(g globals) faults {
	if c.To == "" {
		return checkCluster(g, "", c.Node)
	}
	return checkCluster(g, "", c.Node, c.To)
}

func (c *cellAddCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	on, _ := cells.ParseNode(c.On)
	cell, err := cluster.AddCell(ctx, c.Name, on)
	if err == nil {
		fmt.Fprintf(p.stderr, "The cell %s is on %s. Its service, and all commands for its apps, "+
			"need this --database-url:\n", cell.Name,
			cell.Place)
		fmt.Fprintln(p.stdout, cell.URL)
	}
	return err
}

func (*cellListCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	all, nodes, err := cluster.Look(ctx)
	if err != nil {
		return err
	}
	has := map[string][]string{}
	err = printRows(p.stdout, nil, "CELL\tNODE\tSIZE\tAPPS\tVISITS TODAY\tSTANDBY\tSTATE", all, func(l cells.Look) []any {
		has[l.Place] = append(has[l.Place], l.Name)
		if l.Bytes == 0 {
			return []any{l.Name, l.Place, "-", "-", "-", "-", db.Sentence(l.Err)}
		}
		standby, state := cmp.Or(strings.Join(l.Standbys, ", "), "-"), "ready"
		if l.Standby.Required {
			standby += ", required"
		}
		switch {
		case l.Err != nil:
			state = db.Sentence(l.Err)
		case l.Standby.IsMissing || l.Standby.IsHanging:
			state = "counts nothing: no standby follows or responds"
		case l.Moves:
			state = "ready, being moved"
		}
		return []any{l.Name, l.Place, size(l.Bytes), l.Apps, l.VisitsToday, standby, state}
	})
	fmt.Fprintln(p.stdout)
	err = printRows(p.stdout, err, "NODE\tCELLS\tDISK\tSTATE", nodes, func(n cells.NodeLook) []any {
		names, state, disk := cmp.Or(strings.Join(has[n.String()], ", "), "-"), "answers", size(n.Bytes)
		if n.Err != nil {
			state, disk = db.Sentence(n.Err), "-"
		} else if n.Node == nodes[0].Node {
			state += ", coordinator"
		}
		return []any{n.Node, names, disk, state}
	})
	fmt.Fprintln(p.stdout)
	return printRows(p.stdout, err, "CELL\tURL", all, func(l cells.Look) []any { return []any{l.Name, l.URL} })
}

// cellMetrics collects metrics of a cell. It reads the cell's state each time Prometheus collects metrics. The label node
// contains the address of the machine with the cell's tables.
type cellMetrics struct{ d *db.DB }

// Describe sends no descriptions, because Collect creates new ones each time.
func (cellMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the cell's metrics. If the cell's state cannot be read, Collect sends only the metric footfall_cell_up,
// with the value 0.
func (m cellMetrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := m.d.InTime(context.Background())
	defer cancel()
	node := m.d.Place(ctx)
	tell := func(name, help string, value int64) {
		desc := prometheus.NewDesc("footfall_cell_"+name, help, []string{"node"}, nil)
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), node)
	}
	const up = "1 if the node with the cell's tables responds. If it is 0, the cell has no other metrics."
	look, err := cells.LookAt(ctx, m.d)
	if err != nil {
		tell("up", up, 0)
		return
	}
	tell("up", up, 1)
	tell("bytes", "Size of the cell's database.", look.Bytes)
	tell("apps", "Apps of the cell.", int64(look.Apps))
	tell("standbys", "Standbys that follow the node with the cell's tables.", int64(len(look.Standbys)))
}

func (c *cellMoveCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	to, _ := cells.ParseNode(c.To)
	cell, err := cluster.MoveCell(ctx, c.Name, to)
	return p.printChange(err, "the cell %s is on %s", cell.Name, cell.Place)
}

func (c *cellMoveAppCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	all, err := cluster.Cells(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(cell cells.Cell) bool { return cell.Name == c.To })
	if at < 0 {
		return fmt.Errorf("there is no cell %s: `footfall cell list` shows all cells", c.To)
	}
	to, err := p.openTables(ctx, all[at].URL)
	if err != nil {
		return err
	}
	defer to.Close()
	var sources []string // URLs of the databases that may contain the app
	if sources = []string{c.From}; c.From == "" {
		sources[0] = p.DatabaseURL
		for i, cell := range all {
			if i != at {
				sources = append(sources, cell.URL)
			}
		}
	}
	from, err := c.source(ctx, p, sources)
	if err != nil {
		return err
	}
	defer from.Close()
	moving := admin.AppMove{Name: c.App, Cell: c.To, From: admin.NewAdmin(from, nil), To: admin.NewAdmin(to, nil),
		PointName: func(ctx context.Context) error { return c.pointName(ctx, p) }}
	err = moving.MoveApp(ctx)
	refused := ""
	if moving.Refused > 0 {
		refused = fmt.Sprintf("; visits were refused for %v", moving.Refused.Round(time.Millisecond))
	}
	return p.printChange(err, "app %s is in the cell %s, with all its data%s; `footfall verify --app %[1]s` checks its numbers",
		c.App, c.To, refused)
}

// openTables opens the database at url. It returns an error unless the schema matches this version of footfall.
func (p *program) openTables(ctx context.Context, url string) (*db.DB, error) {
	d, err := db.Open(ctx, url, db.Options{Log: p.log})
	if err != nil {
		return nil, err
	}
	if err := d.CheckSchema(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// source finds the database from which the app must be moved. It returns the first database in urls that contains the app,
// even if an earlier move from there was interrupted. If no database contains the app, an earlier move may already have
// moved it. Then source returns a database in which the app's cell is c.To.
func (c *cellMoveAppCmd) source(ctx context.Context, p *program, urls []string) (of *db.DB, err error) {
	for _, url := range urls {
		d, failed := p.openTables(ctx, url)
		if failed != nil {
			if url != p.DatabaseURL || url == c.From { // the database of --database-url may have no tables of Footfall
				err = errors.Join(err, failed)
			}
			continue
		}
		apps, failed := d.Apps(ctx)
		err = errors.Join(err, failed)
		row := slices.IndexFunc(apps, func(row db.App) bool { return row.Name == c.App })
		switch {
		case row >= 0 && (apps[row].Cell == nil || apps[row].MovingTo != nil):
			if of != nil {
				of.Close()
			}
			return d, nil
		case row >= 0 && *apps[row].Cell == c.To && of == nil: // the app was already moved
			of = d
		default:
			d.Close()
		}
	}
	if of == nil && err == nil {
		if err = fmt.Errorf("no cell except %s has an app %s: if the app is in a database that is "+
			"not a cell, name this database with --from", c.To, c.App); c.From != "" {
			err = fmt.Errorf("the database of --from has no app %s", c.App)
		}
	}
	return of, err
}

// pointName records in the home database that the app is in the cell c.To. The home database is the one that serve --cells
// opens first. If it has no tables of Footfall, pointName does nothing, because then no service uses it.
func (c *cellMoveAppCmd) pointName(ctx context.Context, p *program) error {
	home, err := p.openTables(ctx, p.DatabaseURL)
	if errors.Is(err, db.ErrNoSchema) {
		return nil
	}
	if err != nil {
		return err
	}
	defer home.Close()
	names := admin.NewAdmin(home, nil)
	led, err := names.ClaimName(ctx, c.App, c.To)
	if err == nil && led != "" && led != c.To {
		err = names.LeadName(ctx, c.App, led, c.To, nil)
	}
	return err
}

func (c *nodeAddCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	node, _ := cells.ParseNode(c.Node)
	return p.printChange(cluster.AddNode(ctx, node), "%v is a node of the cluster", node)
}

func (c *cellDropCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	asks := fmt.Sprintf("The cell %s, with all its numbers, will be dropped on all nodes.", c.Name)
	if err := c.ask(p, asks, c.Name); err != nil {
		return err
	}
	return p.printChange(cluster.DropCell(ctx, c.Name), "dropped the cell %s", c.Name)
}

func (c *nodeReplaceCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	old, _ := cells.ParseNode(c.Old)
	by, _ := cells.ParseNode(c.New)
	return p.printChange(cluster.ReplaceNode(ctx, old, by), "%v has replaced %v", by, old)
}

func (c *nodeRemoveCmd) run(ctx context.Context, p *program, cluster *cells.Cluster) error {
	node, _ := cells.ParseNode(c.Node)
	to, _ := cells.ParseNode(c.To)
	return p.printChange(cluster.RemoveNode(ctx, node, to), "%v is no longer a node of the cluster", node)
}
