// Lists the licences of all dependencies. Fails if one is neither permissive nor justified in docs/licences.md.
import { readFileSync } from 'node:fs'

/** Licences that require at most that their text is included. */
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

interface Exception extends Dependency {
  isUsed: boolean
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
function readExceptions(): Exception[] {
  const document = readFileSync(new URL('../docs/licences.md', import.meta.url), 'utf8')
  return Array.from(document.matchAll(/^\| `([^`]+)` \| ([^|]+?) \|/gm), ([, name = '', licence = '']) => ({
    name,
    licence,
    isUsed: false,
  }))
}

/** @param licence an SPDX expression: every part of an `AND` must be permissive, and one part of an `OR` */
function isPermissive(licence: string): boolean {
  return licence
    .replaceAll(/[()]/g, '')
    .split(' AND ')
    .every(part => part.split(' OR ').some(one => PERMISSIVE.has(one)))
}

function findException({ name, licence }: Dependency, exceptions: readonly Exception[]): boolean {
  const row = exceptions.find(entry => {
    const matches = entry.name.endsWith('*') ? name.startsWith(entry.name.slice(0, -1)) : name === entry.name
    return matches && entry.licence === licence
  })
  if (row) row.isUsed = true
  return row !== undefined
}

const dependencies = readDependencies()
const exceptions = readExceptions()
const byLicence = Map.groupBy(dependencies, ({ licence }) => licence)
for (const [licence, packages] of [...byLicence].sort(([, a], [, b]) => b.length - a.length)) {
  process.stdout.write(`${licence} (${packages.length}): ${packages.map(({ name }) => name).join(', ')}\n\n`)
}
const unjustified = dependencies.filter(one => !isPermissive(one.licence) && !findException(one, exceptions))
for (const { name, licence } of unjustified)
  process.stderr.write(`${name} is under ${licence}: justify it in docs/licences.md, or remove it.\n`)
const unused = exceptions.filter(({ isUsed }) => !isUsed)
for (const { name, licence } of unused)
  process.stderr.write(
    `docs/licences.md justifies ${name} under ${licence}, which is not a dependency: remove the row.\n`,
  )
if (unjustified.length + unused.length > 0) process.exitCode = 1
