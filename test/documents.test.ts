import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../bin/commands.js'

const ROOT = join(import.meta.dirname, '..')
/** Folders that a path in a document may be relative to, besides the document's own folder. */
const BASES = ['', 'src', 'test/flows', 'simulator/src']
const FOLDERS = ['.ci', 'bench', 'bin', 'docs', 'panel', 'scripts', 'simulator', 'src', 'test']
const FILE = /\.(ts|tsx|js|json|yaml|md)$/
const DOCUMENTS = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'bench/README.md',
  'simulator/README.md',
  ...['docs', 'docs/decisions'].flatMap(folder =>
    readdirSync(join(ROOT, folder)).flatMap(file => (file.endsWith('.md') ? [`${folder}/${file}`] : [])),
  ),
]
/** The documents that name the most paths, and the least number of paths that a working search finds in each. */
const LEAST_PATHS: Readonly<Record<string, number>> = {
  'CONTRIBUTING.md': 100,
  'docs/architecture.md': 20,
  'docs/glossary.md': 50,
  'docs/limits.md': 10,
  'docs/reliability.md': 15,
  'docs/security.md': 40,
}

const read = (document: string) => readFileSync(join(ROOT, document), 'utf8')

/** The inline code of a text that is a file or folder of the repository. Placeholders such as `<subject>.ts` are left out. */
function inlinePaths(text: string): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '')
  const spans = Array.from(prose.matchAll(/`([\w.@-]+(?:\/[\w.@-]+)*\/?)`/g), ([, span = '']) => span)
  const isPath = (span: string) =>
    FILE.test(span) || span.endsWith('/') || (span.includes('/') && FOLDERS.includes(span.split('/')[0] ?? ''))
  return spans.filter(isPath)
}

/** The first column of the tree in docs/architecture.md; its indentation gives the parent folder. */
function treePaths(text: string): string[] {
  const tree = /^```\nbin\/[\s\S]*?^```/m.exec(text)?.[0] ?? ''
  const parents: string[] = []
  return tree.split('\n').flatMap(line => {
    const [, indent = '', names = ''] = /^( {0,6})(\S+(?: \S+)*)/.exec(line) ?? []
    const paths = names.split(' ').filter(name => /^[\w-]+(\/[\w-]+)*(\/|\.ts|\.js)$/.test(name))
    const depth = indent.length / 2
    const found = paths.map(name => join(...parents.slice(0, depth), name))
    if (paths.length > 0) parents[depth] = paths[0] ?? ''
    return found
  })
}

function missingPaths(document: string, text: string): string[] {
  const exists = (path: string) => [dirname(document), ...BASES].some(base => existsSync(join(ROOT, base, path)))
  return [...inlinePaths(text), ...treePaths(text)].filter(path => !exists(path))
}

/** `name` in `path/of/a/file.ts`, or the path with the name in brackets, where the file does not contain the name. */
function namesElsewhere(document: string, text: string): string[] {
  const identifier = '`#?([A-Za-z_]\\w*)`'
  const file = '`([\\w.@/-]+\\.tsx?)`'
  const after = Array.from(
    text.matchAll(new RegExp(`${identifier} in\\s+${file}`, 'g')),
    ([, name = '', path = '']) => [name, path],
  )
  const before = Array.from(
    text.matchAll(new RegExp(`${file} \\(${identifier}\\)`, 'g')),
    ([, path = '', name = '']) => [name, path],
  )
  return [...after, ...before].flatMap(([name = '', path = '']) => {
    const found = [dirname(document), ...BASES].map(base => join(ROOT, base, path)).find(each => existsSync(each))
    if (found === undefined) return []
    return new RegExp(`\\b${name}\\b`).test(readFileSync(found, 'utf8')) ? [] : [`${name} in ${path}`]
  })
}

/** The documents for developers, in which every plain identifier in inline code is one of the code. */
const NAMES_CODE = ['CONTRIBUTING.md', 'docs/architecture.md', 'docs/glossary.md']
const CODE = ['bench', 'bin', 'panel/src', 'scripts', 'simulator/src', 'src', 'test']

const readWords = () =>
  new Set(
    CODE.flatMap(folder =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .map(file => join(ROOT, folder, file))
        .filter(file => /\.(ts|tsx|js)$/.test(file) && file !== import.meta.filename)
        .flatMap(file => readFileSync(file, 'utf8').match(/\w+/g) ?? []),
    ),
  )

/** `name`, `#name`, `name()` and `Owner.name`. A name that ends in `_` is a prefix. */
function unknownIdentifiers(text: string, words: ReadonlySet<string>): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '')
  const names = Array.from(prose.matchAll(/`#?([A-Za-z]\w*(?:\.\w+)?)(?:\(\w*\))?`/g), ([, name = '']) => name)
  return names.flatMap(name => name.split('.')).filter(name => !words.has(name) && !name.endsWith('_'))
}

/** Relative links whose file does not exist or has no such heading. */
function brokenLinks(document: string, text: string): string[] {
  const links = Array.from(text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g), ([, link = '']) => link)
  return links.filter(link => {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? document : join(dirname(document), path)
    if (!existsSync(join(ROOT, target))) return true
    return anchor !== undefined && !headings(read(target)).includes(anchor)
  })
}

/** Headings as GitHub writes them in a link. */
function headings(text: string): string[] {
  const titles = Array.from(text.matchAll(/^#+ (.*)$/gm), ([, title = '']) => title)
  return titles.map(title =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

const SCRIPTS = Object.keys(JSON.parse(read('package.json')).scripts)

function unknownCommands(text: string): string[] {
  const code = Array.from(text.matchAll(/^```[\s\S]*?^```|`[^`]+`/gm), ([span]) => span).join('\n')
  const commands = Array.from(code.matchAll(/npm run ([\w:-]+)(?![\w:-]| -w)/g), ([, script = '']) => script)
  return commands.filter(script => !SCRIPTS.includes(script))
}

describe.each(DOCUMENTS)('%s', document => {
  const text = read(document)

  test('names only files and folders that exist', () => {
    expect(inlinePaths(text).length).toBeGreaterThanOrEqual(LEAST_PATHS[document] ?? 0)
    expect(missingPaths(document, text)).toEqual([])
  })

  test('names types and functions only beside files that contain them', () =>
    expect(namesElsewhere(document, text)).toEqual([]))

  test('links only to files and headings that exist', () => expect(brokenLinks(document, text)).toEqual([]))

  test('names only npm scripts that exist', () => expect(unknownCommands(text)).toEqual([]))

  test('a violation is found', () => {
    const wrong = 'See `webhooks/nothing.ts`, `test/nothing` and [this](nothing.md#nowhere). Run `npm run nothing`.'
    expect(missingPaths(document, wrong)).toEqual(['webhooks/nothing.ts', 'test/nothing'])
    const elsewhere = 'See `Nothing` in `src/app.ts` and `src/app.ts` (`#nothing`).'
    expect(namesElsewhere(document, elsewhere)).toEqual(['Nothing in src/app.ts', 'nothing in src/app.ts'])
    expect(brokenLinks(document, wrong)).toEqual(['nothing.md#nowhere'])
    expect(unknownCommands(wrong)).toEqual(['nothing'])
  })
})

test('the documents for developers name only identifiers that occur in the code', () => {
  const words = readWords()
  for (const document of NAMES_CODE)
    expect([document, ...unknownIdentifiers(read(document), words)]).toEqual([document])
  const wrong = '`Store.seedNothing`, `#seedNothing`, `seedNothing(x)`, `seed_`, `Store` and `until`'
  expect(unknownIdentifiers(wrong, words)).toEqual(['seedNothing', 'seedNothing', 'seedNothing'])
})

test('the tree in docs/architecture.md is understood, and a missing folder in a tree is found', () => {
  const paths = treePaths(read('docs/architecture.md'))
  expect(paths.length).toBeGreaterThan(30)
  expect(paths).toContain('src/store/engine/')
  expect(missingPaths('README.md', '```\nbin/\nsrc/\n  nowhere/\n```')).toEqual(['src/nowhere/'])
})

test('docs/commands.md has a row for each command and for its npm script', () => {
  const rows = Array.from(
    read('docs/commands.md').matchAll(/^\| `([\w-]+)[^|]*\| ([^|]*)\|/gm),
    ([, name, script]) => ({
      name,
      script: script?.match(/npm (?:run )?([\w:-]+)/)?.[1],
    }),
  )
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const expected = Object.keys(COMMANDS).map(name => ({
    name,
    script: Object.keys(scripts).find(
      script => scripts[script] === `node bin/pombal.js${name === 'serve' ? '' : ` ${name}`}`,
    ),
  }))
  expect(rows).toEqual(expected)
})
