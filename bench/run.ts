/**
 * `npm run bench`: the cost of Pombal, as ratios to a simpler reference that does the same without Pombal's guarantees.
 * Both are measured in the same run, alternately. Prints a table and writes JSON. Targets are shown, not enforced: the
 * exit code is 1 only if a measurement failed.
 *
 *   --only NAMES    these scenarios, separated by commas; may be repeated
 *   --store KIND    sqlite or postgres alone
 *   --quick         fewer rounds and smaller sizes, a few minutes: checks that it runs, not how fast it is
 *   --long          more and longer rounds, where a scenario has them
 *   --seconds N     how long `whole` sustains its load; default: 120
 *   --instances N   the number of instances of `fleet`; default: 2000
 *   --out FILE      the JSON file; default: results/latest.local.json next to this file
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { readOptions } from '../scripts/command-line.ts'
import { openDatabases } from './harness/databases.ts'
import type { Figure, StoreKind } from './harness/figure.ts'
import { describeMachine, type Machine } from './harness/machine.ts'
import { tableOf } from './harness/report.ts'
import type { Scenario } from './harness/scenario.ts'
import { accept } from './scenarios/accept.ts'
import { busy } from './scenarios/busy.ts'
import { endpoints } from './scenarios/endpoints.ts'
import { fleet } from './scenarios/fleet.ts'
import { idle } from './scenarios/idle.ts'
import { lanes } from './scenarios/lanes.ts'
import { latency } from './scenarios/latency.ts'
import { media } from './scenarios/media.ts'
import { memory } from './scenarios/memory.ts'
import { nodes } from './scenarios/nodes.ts'
import { texts } from './scenarios/texts.ts'
import { webhooks } from './scenarios/webhooks.ts'
import { whole } from './scenarios/whole.ts'

const SCENARIOS: readonly Scenario[] = [
  accept,
  busy,
  webhooks,
  texts,
  memory,
  media,
  idle,
  lanes,
  endpoints,
  nodes,
  latency,
  whole,
  fleet,
]
const STORES: readonly StoreKind[] = ['sqlite', 'postgres']

interface Choice {
  scenarios: readonly Scenario[]
  stores: readonly StoreKind[]
  quick: boolean
  long: boolean
  seconds?: number
  instances?: number
  out: string
}

const USAGE =
  'usage: npm run bench -- [--only SCENARIO,…] [--store sqlite|postgres] [--quick | --long] [--seconds N] [--instances N] [--out FILE]'

function readChoice(): Choice {
  const { values } = readOptions(USAGE, {
    only: { type: 'string', multiple: true },
    store: { type: 'string' },
    quick: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    instances: { type: 'string' },
    out: { type: 'string', default: join(import.meta.dirname, 'results/latest.local.json') },
  })
  const scenarios =
    values.only?.flatMap(names => names.split(',')).map(name => oneOf(SCENARIOS, name, scenario => scenario.name)) ??
    SCENARIOS.filter(({ onlyIfNamed }) => !onlyIfNamed)
  const stores = values.store === undefined ? STORES : [oneOf(STORES, values.store, kind => kind)]
  const { quick, long, out } = values
  return {
    scenarios,
    stores,
    quick,
    long,
    out: resolve(out),
    ...(values.seconds !== undefined && { seconds: positive(values.seconds) }),
    ...(values.instances !== undefined && { instances: positive(values.instances) }),
  }
}

function oneOf<T>(all: readonly T[], name: string, nameOf: (one: T) => string): T {
  const found = all.find(one => nameOf(one) === name)
  return found ?? refuse(`"${name}" is not one of ${all.map(nameOf).join(', ')}.`)
}

function positive(text: string): number {
  const value = Number(text)
  return Number.isInteger(value) && value >= 1 ? value : refuse(`"${text}" is not a positive whole number.`)
}

function refuse(why: string): never {
  console.error(`${why}\n${USAGE}`)
  process.exit(2)
}

const startedAt = performance.now()

function say(line: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)
  process.stderr.write(`${seconds} s  ${line}\n`)
}

async function measure(scenario: Scenario, store: StoreKind, choice: Choice): Promise<Figure[]> {
  await using cleanUp = new AsyncDisposableStack()
  const name = `${scenario.name}, ${store}`
  say(name)
  const createDatabase = await openDatabases(store, cleanUp)
  return await scenario.measure({ ...choice, store, createDatabase, say: line => say(`${name}: ${line}`) }, cleanUp)
}

function write(file: string, machine: Machine, quick: boolean, figures: readonly Figure[]): void {
  mkdirSync(dirname(file), { recursive: true })
  const result = { at: new Date().toISOString(), quick, machine, figures }
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`)
}

// Child processes end with this process, however it ends.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const choice = readChoice()
const { scenarios, stores, quick, out } = choice
const machine = describeMachine()
const figures: Figure[] = []
const failures: string[] = []

for (const scenario of scenarios) {
  for (const store of scenario.stores.filter(kind => stores.includes(kind))) {
    try {
      figures.push(...(await measure(scenario, store, choice)))
    } catch (error) {
      failures.push(`${scenario.name}, ${store}: ${(error as Error).stack}`)
      say(failures.at(-1)!)
    }
  }
}

write(out, machine, quick, figures)
process.stdout.write(
  [
    '',
    `Medians of alternating rounds. Noise: the spread of the reference over its rounds.${quick ? ' QUICK: not to be quoted.' : ''}`,
    `${machine.cores} × ${machine.processor}, Node ${machine.node.slice(1)}, load before ${machine.loadBefore.toFixed(1)}, ` +
      `4 KiB synced in ${machine.syncMs.toFixed(2)} ms`,
    '',
    tableOf(figures),
    '',
    `Written to ${out}`,
    '',
  ].join('\n'),
)
if (failures.length > 0) {
  process.stdout.write(`\nNot measured:\n${failures.map(failure => `  ${failure}\n`).join('')}`)
  process.exitCode = 1
}
