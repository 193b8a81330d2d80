import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { killOnExit } from '../kill-on-exit.ts'
import type { BuiltImage, ImageConfig } from './build-image.ts'

/** Mounts the image read-only, with a writable /data and /tmp, and starts its program there. $1: the image, $2: the data. */
const START = `
  set -e
  mount --bind "$1" "$1"
  mount --bind "$2" "$1/data"
  mount -t tmpfs tmpfs "$1/tmp" -o mode=1777
  mount -t tmpfs tmpfs "$1/dev" -o mode=755
  for device in null zero random urandom; do touch "$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done
  mount -t proc proc "$1/proc"
  mount -o remount,bind,ro "$1"
  files=$1; shift 2
  exec chroot "$files" "$@"
`

/** Runs an image as `docker run --read-only --cap-drop ALL --security-opt no-new-privileges --tmpfs /tmp --network host` does. */
export class Container {
  readonly exited: Promise<number | null>
  readonly #child: ChildProcess
  readonly #inside: readonly string[]
  #output = ''
  #hasEnded = false

  constructor({ config, files }: BuiltImage, options: { data: string; env: Record<string, string> }) {
    this.#inside = enter(config, options.env)
    const program = [...this.#inside, ...config.Entrypoint, ...config.Cmd]
    const args = ['--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child', 'sh', '-c', START, 'sh', files]
    this.#child = spawn('unshare', [...args, options.data, ...program], { stdio: ['ignore', 'pipe', 'pipe'] })
    killOnExit(this.#child)
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', text => {
        this.#output += text
      })
    }
    this.exited = new Promise(resolve => {
      this.#child.once('close', code => {
        this.#hasEnded = true
        resolve(code)
      })
    })
  }

  get output(): string {
    return this.#output
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Runs a command in the container, as `docker exec` and the health check do. */
  exec(command: readonly string[]): Promise<{ code: number; output: string }> {
    const args = ['--target', String(this.#pid()), '--mount', '--pid', '--ipc', '--uts', '--root', '--wd']
    return new Promise(resolve => {
      execFile('nsenter', [...args, ...this.#inside, ...command], (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        resolve({ code, output: stdout + stderr })
      })
    })
  }

  stop(): void {
    process.kill(this.#pid(), 'SIGTERM')
  }

  /** The ID, outside of the container, of its first process: the only child of `unshare`. */
  #pid(): number {
    const unshare = this.#child.pid
    return Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').trim().split(' ')[0])
  }
}

/** The command that makes the next one run as the image's user, without capabilities and in its environment. */
function enter(config: ImageConfig, more: Record<string, string>): string[] {
  const [uid = '', gid = ''] = config.User.split(':')
  const env = [...config.Env, ...Object.entries(more).map(([name, value]) => `${name}=${value}`)]
  const rights = ['--clear-groups', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, ...rights]
  return [...user, 'env', '--ignore-environment', `--chdir=${config.WorkingDir}`, ...env]
}
