import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
/** The folder of the migrations, now and in earlier commits. */
const FOLDERS = ['src/store/engine/migrations', 'src/store/migrations']
/** Files that are not in git, and are the same for both versions. */
const BUILT = ['node_modules', 'simulator/node_modules', 'panel/node_modules', 'panel/dist']

export interface PreviousVersion {
  /** Its `bin/pombal.js`. */
  program: string
  dispose(): void
}

/**
 * The program as it was before the newest steps of the schema, taken from git, in a temporary folder.
 * @param step the number of a step, such as `0012`: the program as it was before that one
 * @throws Error if the history is not available
 */
export function openPreviousVersion(step?: string): PreviousVersion {
  const commit = findCommit(step)
  const folder = mkdtempSync(join(tmpdir(), 'pombal-previous-'))
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 28 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  for (const name of BUILT) {
    if (existsSync(join(ROOT, name)) && !existsSync(join(folder, name)))
      symlinkSync(join(ROOT, name), join(folder, name))
  }
  return {
    program: join(folder, 'bin/pombal.js'),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The newest commit that has all present steps except the last one (or except `step` and those after it). */
function findCommit(step?: string): string {
  const all = listSteps('HEAD')
  const present = step === undefined ? all : all.slice(0, all.findIndex(name => name.startsWith(`${step}-`)) + 1)
  const commits = git('log', '--format=%H', '--', ...FOLDERS)
  const found = commits.find(commit => {
    const steps = listSteps(commit)
    const isOlder = steps.length < present.length && steps.every((step, index) => step === present[index])
    return isOlder && listImports(commit).every(name => steps.includes(name))
  })
  if (found === undefined)
    throw new Error('No commit has an older schema: the history is needed, a shallow clone is not enough.')
  return found
}

/** The names of the files, in the order of the steps. */
function listSteps(commit: string): string[] {
  const paths = git('ls-tree', '-r', '--name-only', commit, ...FOLDERS.map(folder => `${folder}/`))
  const names = paths.map(path => basename(path)).filter(name => /^\d{4}-.*\.ts$/.test(name))
  return names.toSorted()
}

/** The steps that the program of a commit requires. */
function listImports(commit: string): string[] {
  const [file = ''] = git('ls-tree', '--name-only', commit, ...FOLDERS.map(folder => `${folder}/migrate.ts`))
  const lines = git('show', `${commit}:${file}`)
  return lines.flatMap(line => /from '\.\/(?:\w+\/)?(\d{4}-[^']*\.ts)'/.exec(line)?.[1] ?? [])
}

function git(...command: string[]): string[] {
  return execFileSync('git', command, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean)
}
