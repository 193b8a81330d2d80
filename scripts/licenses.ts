// Lists the licences of all dependencies, and fails on one that is neither permissive nor argued in docs/licences.md.
import { readFileSync } from 'node:fs'

/** They ask for no more than that their text goes along. */
const PERMISSIVE = new Set([
  'MIT',
  'ISC',
  '0BSD',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'Unlicense',
  'CC0-1.0',
])
const NONE = 'none stated'

interface Dependency {
  name: string
  licence: string
}

interface Argued extends Dependency {
  isMet: boolean
}

function readDependencies(): Dependency[] {
  const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as {
    packages: Record<string, { license?: string; link?: boolean }>
  }
  const installed = Object.entries(lock.packages).filter(([path, { link }]) => path.includes('node_modules/') && !link)
  const names = installed.map(([path, { license }]) => [path.replace(/.*node_modules\//, ''), license ?? NONE])
  return [
    ...new Map(names.map(([name, licence]) => [`${name} ${licence}`, { name: name!, licence: licence! }])).values(),
  ]
}

/** The rows of the document's table: a package, which may end in `*`, and its licence. */
function readArgued(): Argued[] {
  const document = readFileSync(new URL('../docs/licences.md', import.meta.url), 'utf8')
  return Array.from(document.matchAll(/^\| `([^`]+)` \| ([^|]+?) \|/gm), ([, name = '', licence = '']) => ({
    name,
    licence,
    isMet: false,
  }))
}

/** Of an SPDX expression: every part of an `AND`, one part of an `OR`. */
function isPermissive(licence: string): boolean {
  return licence
    .replaceAll(/[()]/g, '')
    .split(' AND ')
    .every(part => part.split(' OR ').some(one => PERMISSIVE.has(one)))
}

function argue({ name, licence }: Dependency, argued: readonly Argued[]): boolean {
  const row = argued.find(entry => {
    const matches = entry.name.endsWith('*') ? name.startsWith(entry.name.slice(0, -1)) : name === entry.name
    return matches && entry.licence === licence
  })
  if (row) row.isMet = true
  return row !== undefined
}

const dependencies = readDependencies()
const argued = readArgued()
const byLicence = Map.groupBy(dependencies, ({ licence }) => licence)
for (const [licence, packages] of [...byLicence].sort(([, a], [, b]) => b.length - a.length)) {
  process.stdout.write(`${licence} (${packages.length}): ${packages.map(({ name }) => name).join(', ')}\n\n`)
}
const unargued = dependencies.filter(dependency => !isPermissive(dependency.licence) && !argue(dependency, argued))
for (const { name, licence } of unargued)
  process.stderr.write(`${name} is under ${licence}: argue for it in docs/licences.md.\n`)
const stale = argued.filter(({ isMet }) => !isMet)
for (const { name, licence } of stale)
  process.stderr.write(`${name} under ${licence} is argued for, and is not used.\n`)
if (unargued.length + stale.length > 0) process.exitCode = 1
