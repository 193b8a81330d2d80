import { parseSync } from 'oxc-parser'

export interface Import {
  /** As written: `./writer.ts`, `kysely`, `node:fs`. */
  specifier: string
  line: number
}

export interface Imports {
  imports: Import[]
  /** The lines of `import(…)` whose argument is not a literal. */
  computed: number[]
}

/** Imports that the parser's module record omits: the type `import('x')`, and the files of workers. */
const TYPE_IMPORT = /\bimport\(\s*(['"])(?<specifier>[^'"]+)\1\s*\)/g
const MODULE_URL = /\bnew URL\(\s*(['"])(?<specifier>\.[^'"]*\.[cm]?[jt]sx?)\1\s*,\s*import\.meta\.url/g

/** Finds every import of a module, types included. @throws if the text cannot be parsed */
export function importsOf(path: string, text: string): Imports {
  const { module, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`)
  const found = new Map<number, string>()
  const computed: number[] = []
  for (const { moduleRequest } of module.staticImports) found.set(moduleRequest.start, moduleRequest.value)
  for (const { moduleRequest } of module.staticExports.flatMap(statement => statement.entries)) {
    if (moduleRequest) found.set(moduleRequest.start, moduleRequest.value)
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^(['"`])(?<specifier>[^$]*)\1$/.exec(text.slice(moduleRequest.start, moduleRequest.end))
    if (literal) found.set(moduleRequest.start, literal.groups!['specifier']!)
    else computed.push(lineAt(text, moduleRequest.start))
  }
  for (const pattern of [TYPE_IMPORT, MODULE_URL]) {
    for (const match of text.matchAll(pattern)) {
      const specifier = match.groups!['specifier']!
      found.set(match.index + match[0].indexOf(specifier) - 1, specifier)
    }
  }
  const imports = [...found].map(([start, specifier]) => ({ specifier, line: lineAt(text, start) }))
  return { imports, computed }
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
