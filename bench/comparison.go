package bench

// Comparison is what Compare measured: every contender on every workload, several times.
type Comparison struct {
	Machine    Machine          `json:"machine"`
	Through    string           `json:"through"` // "recorder": in this process; "http": wrk against a process for each contender
	Command    string           `json:"command"` // that repeats it
	Clients    int              `json:"clients"` // who visit at once; over HTTP: connections
	Rounds     int              `json:"rounds"`
	Seed       uint64           `json:"seed"`
	Contenders []ContenderAbout `json:"contenders"` // in the order of the tables
	Workloads  []WorkloadAbout  `json:"workloads"`
	Rows       []ComparisonRow  `json:"rows"` // a row for each workload and contender, over the rounds
	Runs       []Run            `json:"runs"` // what the rows sum up
}

// ContenderAbout says what a contender is.
type ContenderAbout struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Exact bool   `json:"exact"` // any difference from the truth makes the comparison fail
}

// WorkloadAbout says what a workload is.
type WorkloadAbout struct {
	Name   string  `json:"name"`
	About  string  `json:"about"`
	Visits int     `json:"visits"` // of each run; over HTTP as many as fit the time
	First  float64 `json:"first"`  // share of the visits that are the first of a visitor to a page
}

// Run is one contender's turn at one workload, on a new database.
type Run struct {
	Contender string  `json:"contender"`
	Workload  string  `json:"workload"`
	Round     int     `json:"round"`
	Visits    int     `json:"visits"`
	PerSecond float64 `json:"perSecond"`
	P50Ms     float64 `json:"p50Ms"`
	P95Ms     float64 `json:"p95Ms"`
	P99Ms     float64 `json:"p99Ms"`
	Asked     float64 `json:"existenceQueries"` // for each visit: keys looked up to decide new or known
	Written   float64 `json:"rowsWritten"`      // for each visit: rows inserted and updated
	WAL       float64 `json:"walBytes"`         // for each visit
	Memory    int64   `json:"memoryBytes"`      // held by the service or contender: heap after the run; over HTTP the peak of its process
	Helpers   int64   `json:"helperBytes"`      // of that, the filter's and the memory's own
	Errors    Errors  `json:"errors"`
	Fault     string  `json:"fault,omitempty"` // errors that the contender promises not to make, in words
}

// Errors are a run's differences from the truth.
type Errors struct {
	UV  int64 `json:"uv"`  // visitors that uv misses or has too many, over all targets
	PV  int64 `json:"pv"`  // the same of visitor days
	Hot int64 `json:"hot"` // the same of visits
	// Ranks: answers whose rank is nobody's, somebody else's, or not told, and rows with a rank outside of 1..uv or held twice; over
	// HTTP ranks that the tables miss.
	Ranks int64 `json:"ranks"`
}

// ComparisonRow sums up the rounds of one contender at one workload.
type ComparisonRow struct {
	Contender  string  `json:"contender"`
	Workload   string  `json:"workload"`
	PerSecond  spread  `json:"perSecond"`
	P50Ms      float64 `json:"p50Ms"` // medians of the rounds, as all that follow
	P95Ms      float64 `json:"p95Ms"`
	P99Ms      float64 `json:"p99Ms"`
	Asked      float64 `json:"existenceQueries"`
	Written    float64 `json:"rowsWritten"`
	WAL        float64 `json:"walBytes"`
	Memory     int64   `json:"memoryBytes"` // the most of any round
	Helpers    int64   `json:"helperBytes"`
	Errors     Errors  `json:"errors"`     // the sum of all rounds
	Visits     int     `json:"visits"`     // of all rounds
	ToBaseline float64 `json:"toBaseline"` // medians of visits/s compared, in this workload
	ToNaive    float64 `json:"toNaive"`
	ToBatched  float64 `json:"toBatched"`
	ToConstant float64 `json:"toConstant,omitempty"` // over HTTP only
}
