-- Each thread sends the visits of a file of its own, a line each, in their order: the query, and where a proxy is to be played,
-- behind a tab the address that it tells. The arguments are the files' name without the thread's number, whether to begin again at the
-- end ("again" or "once"), and a file of headers: a request has those of one line, with tabs between them, and the next request of the next.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

function init(args)
  visits = assert(io.open(args[1] .. "." .. number))
  again = args[2] == "again"
  head, tails = "GET /visit?app=demo&", {}
  for headers in io.lines(args[3]) do
    local tail = " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n"
    if headers ~= "" then
      tail = tail .. headers:gsub("\t", "\r\n") .. "\r\n"
    end
    table.insert(tails, tail)
  end
  uncounted = "GET /readyz" .. tails[1] .. "\r\n"
  sent, ended = 0, 0
  rehearsed = number ~= 1
end

function request()
  if not rehearsed then -- wrk asks its first thread for a request that it only looks at
    rehearsed = true
    return uncounted
  end
  local visit = visits:read("*l")
  if not visit and again then
    visits:seek("set")
    visit = visits:read("*l")
  end
  if not visit then
    ended = 1
    wrk.thread:stop()
    return uncounted
  end
  sent = sent + 1
  local tail = tails[sent % #tails + 1]
  local tab = visit:find("\t", 1, true)
  if tab then
    return head .. visit:sub(1, tab - 1) .. tail .. "X-Forwarded-For: " .. visit:sub(tab + 1) .. "\r\n\r\n"
  end
  return head .. visit .. tail .. "\r\n"
end

-- One line for the program that reads this output: times in whole microseconds, and of each thread how many visits it sent.
function done(summary, latency, requests)
  local e = summary.errors
  local sent, ended = {}, 0
  for i, thread in ipairs(threads) do
    sent[i] = thread:get("sent")
    ended = ended + thread:get("ended")
  end
  io.write(string.format(
    'result {"requests":%d,"us":%d,"p50":%d,"p99":%d,"errors":%d,"ended":%d,"sent":[%s]}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout, ended, table.concat(sent, ",")))
end
