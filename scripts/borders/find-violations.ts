import { posix } from 'node:path'
import { importsOf } from './imports-of.ts'

/** A folder, or a single file, and everything that it may import. What is not listed is refused. */
export interface Module {
  /** The module of a file is the one with the longest path that contains it. */
  path: string
  /** Paths of other modules, or of single files in them. */
  modules: readonly string[]
  /** Packages by name, with all their subpaths, and Node's own as `node:fs`. */
  packages: readonly string[]
  /** Allows `import(…)` of a name that is computed. */
  computed?: true
}

export interface Source {
  /** From the root of the repository. */
  path: string
  text: string
}

/** @returns a sentence for each import that no module allows, and for each file that belongs to no module */
export function findViolations(modules: readonly Module[], sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const module = moduleOf(modules, path)
    if (module === undefined) return [`${path} belongs to no module.`]
    const { imports, computed } = importsOf(path, text)
    const refused = imports.filter(({ specifier }) => !allows(modules, module, path, specifier))
    return [
      ...refused.map(({ specifier, line }) => `${path}:${line} must not import ${specifier} (${module.path}).`),
      ...(module.computed ? [] : computed).map(line => `${path}:${line} imports a name that is computed.`),
    ]
  })
}

function moduleOf(modules: readonly Module[], path: string): Module | undefined {
  const candidates = modules.filter(module => isWithin(path, module.path))
  return candidates.sort((a, b) => b.path.length - a.path.length)[0]
}

function allows(modules: readonly Module[], module: Module, from: string, specifier: string): boolean {
  if (!specifier.startsWith('.')) return module.packages.includes(packageOf(specifier))
  const target = posix.join(posix.dirname(from), specifier)
  const owner = moduleOf(modules, target)
  if (owner === module) return true
  return module.modules.some(allowed => target === allowed || owner?.path === allowed)
}

/** `kysely` of `kysely/migration`, `@scope/name` of `@scope/name/sub`; Node's own with their subpaths. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}
