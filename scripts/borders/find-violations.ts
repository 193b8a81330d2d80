import { posix } from 'node:path'
import { importsOf } from './imports-of.ts'

/** A folder or a single file, and everything that it may import. */
export interface Module {
  /** If several modules contain a file, the one with the longest path applies. */
  path: string
  /** Paths of other modules, or of single files in them. */
  modules: readonly string[]
  /** Packages by name, with all their subpaths, and Node's own as `node:fs`. */
  packages: readonly string[]
  /** Allows `import(…)` with a computed name. */
  computed?: true
}

export interface Source {
  /** From the root of the repository. */
  path: string
  text: string
}

/** @returns a sentence for each import that is not allowed, and for each file outside all modules */
export function findViolations(modules: readonly Module[], sources: readonly Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const module = moduleOf(modules, path)
    if (module === undefined) return [`${path} belongs to no module.`]
    const { imports, computed } = importsOf(path, text)
    const refused = imports.filter(({ specifier }) => !allows(modules, module, path, specifier))
    return [
      ...refused.map(({ specifier, line }) => `${path}:${line} must not import ${specifier} (${module.path}).`),
      ...(module.computed ? [] : computed).map(line => `${path}:${line} imports a computed name.`),
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

/** `kysely/migration` belongs to `kysely`, and `@scope/name/sub` to `@scope/name`. Node's own modules keep their subpaths. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}
