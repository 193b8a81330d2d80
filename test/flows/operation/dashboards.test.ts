import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { killOnExit } from '../../kill-on-exit.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const FOLDER = join(import.meta.dirname, '../../../docs/observability')
const RULES = join(FOLDER, 'prometheus-rules.yml')
const METRICS_DOCUMENT = join(import.meta.dirname, '../../../docs/metrics.md')
const isInstalled = (program: string) =>
  (process.env['PATH'] ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))
/** The metrics that a query names: those of the service, of the process and of Node. */
const METRIC = /\b(?:pombal|process|nodejs)_\w+/g

const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] }
const rules = groups.flatMap(group => group.rules)
const dashboard = JSON.parse(readFileSync(join(FOLDER, 'grafana-dashboard.json'), 'utf8')) as {
  panels: { title: string; targets: { expr: string }[] }[]
}
const queries = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const))

let service: Service
let metrics = ''

beforeAll(async () => {
  service = await new Service().start()
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  const { id: messageId } = await instance.send('5511987654321', 'hello')
  await until('it to be read', async () => (await instance.message(messageId)).status === 'read')
  await until('the answered calls to be counted', async () => {
    const headers = { authorization: `Bearer ${service.adminKey}` }
    metrics = await (await fetch(`${service.url}/metrics`, { headers })).text()
    return /pombal_messages_total\{direction="out",step="read"\} 1/.test(metrics)
  })
})
afterAll(() => service?.dispose())

/** The metrics of a query that the service does not declare. Some have no values before the first attempt or failure. */
function unknownIn(query: string): string[] {
  const named = query.match(METRIC) ?? []
  const declared = new Set(Array.from(metrics.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name))
  const isDeclared = (name: string) => declared.has(name) || declared.has(name.replace(/_(bucket|count|sum)$/, ''))
  return named.filter(name => !isDeclared(name))
}

test.each(queries)('the dashboard’s panel %s shows metrics that the service has', (_, query) => {
  expect(query).toMatch(METRIC)
  expect(unknownIn(query)).toEqual([])
})

test.each(rules.map(({ alert, expr }) => [alert, expr]))(
  'the alert %s is about metrics that the service has',
  (_, query) => {
    expect(query).toMatch(METRIC)
    expect(unknownIn(query ?? '')).toEqual([])
  },
)

test('a metric that the service does not have is found', () => {
  expect(unknownIn('rate(pombal_doves_total[5m]) > 0')).toEqual(['pombal_doves_total'])
})

test.each(['accepted', 'sent', 'delivered', 'read'])('the step %s of a message is counted once', step => {
  expect(metrics).toMatch(new RegExp(`^pombal_messages_total\\{direction="out",step="${step}"\\} 1$`, 'm'))
})

test('the calls of the API are counted by their route', () => {
  expect(metrics).toMatch(/pombal_http_requests_total\{method="POST",route="\/v1\/messages\/text",status="202"\} 1/)
  expect(metrics).toMatch(/pombal_http_request_seconds_count\{method="POST",route="\/v1\/messages\/text"\} 1/)
  expect(metrics).toMatch(/pombal_disk_bytes\{kind="free"\} \d/)
})

test('docs/metrics.md has a row for each metric of Pombal', () => {
  const document = readFileSync(METRICS_DOCUMENT, 'utf8')
  const names = Array.from(metrics.matchAll(/^# TYPE (pombal_\S+)/gm), ([, name]) => name ?? '')
  expect(names.filter(name => !document.includes(`\`${name}`))).toEqual([])
})

test.skipIf(!isInstalled('promtool'))('Prometheus loads the rules', async () => {
  const { code, output } = await new Promise<{ code: unknown; output: string }>(resolve => {
    execFile('promtool', ['check', 'rules', RULES], (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, output: stdout + stderr }),
    )
  })
  expect(code, output).toBe(0)
  expect(output).toContain(`${rules.length} rules found`)
})

/** A Prometheus that scrapes the service each second and has the rules. @returns its API, without the address */
async function startPrometheus(): Promise<<T>(path: string) => Promise<T>> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-prometheus-'))
  const config = join(folder, 'prometheus.yml')
  const job = {
    job_name: 'pombal',
    authorization: { credentials: service.adminKey },
    static_configs: [{ targets: [new URL(service.url ?? '').host] }],
  }
  const every = { scrape_interval: '1s', evaluation_interval: '1s' }
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ global: every, rule_files: [RULES], scrape_configs: [job] }), { mode: 0o600 })
  const options = [`--config.file=${config}`, `--storage.tsdb.path=${folder}`, '--web.listen-address=127.0.0.1:0']
  const prometheus = spawn('prometheus', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  killOnExit(prometheus)
  onTestFinished(() => {
    prometheus.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  let log = ''
  prometheus.stderr.setEncoding('utf8').on('data', text => {
    log += text
  })
  const address = await until('Prometheus to listen', () => /msg="Listening on" address=(\S+)/.exec(log)?.[1] ?? false)
  // It listens before it has read its data, and answers 503 until then.
  await until('Prometheus to be ready', async () => (await fetch(`http://${address}/-/ready`)).ok)
  return async path => ((await (await fetch(`http://${address}/api/v1/${path}`)).json()) as { data: never }).data
}

test.skipIf(!isInstalled('prometheus'))(
  'Prometheus scrapes the service and evaluates each rule and query',
  async () => {
    const ask = await startPrometheus()
    await until('a scrape', async () => {
      const { activeTargets } = await ask<{ activeTargets: { health: string }[] }>('targets')
      return activeTargets.some(({ health }) => health === 'up')
    })
    type Rule = { name: string; health: string; lastError?: string }
    const evaluated = await until('each rule to be evaluated', async () => {
      const { groups } = await ask<{ groups: { rules: Rule[] }[] }>('rules')
      const all = groups.flatMap(group => group.rules)
      return all.length > 0 && all.every(({ health }) => health !== 'unknown') && all
    })
    expect(evaluated.map(({ name, health, lastError = '' }) => [name, health, lastError])).toEqual(
      rules.map(({ alert }) => [alert, 'ok', '']),
    )
    for (const [title, query] of queries) {
      const asked = query.replaceAll(/\$__(rate_interval|range)/g, '1m')
      const answer = await ask<{ resultType: string } | undefined>(`query?query=${encodeURIComponent(asked)}`)
      expect(answer?.resultType, `${title}: ${query}`).toBe('vector')
    }
  },
)
