import { execFile, execFileSync } from 'node:child_process'

const MAX_OUTPUT = 64 * 1024 * 1024
/** Some commands wait until the service is ready, which may never happen. */
const TIMEOUT_MS = 30 * 60_000

/** Runs a command as if pasted into a shell. @throws Error with its output if it fails */
export function shell(command: string, folder: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(
      'bash',
      ['-e', '-c', command],
      { cwd: folder, maxBuffer: MAX_OUTPUT, timeout: TIMEOUT_MS },
      (error, stdout, stderr) => {
        if (error) reject(new Error(`${command}\n${stdout}${stderr}`.trim()))
        else resolve(stdout.trim())
      },
    )
  })
}

export function docker(...args: string[]): string {
  return execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

export function succeeds(...args: string[]): boolean {
  try {
    docker(...args)
    return true
  } catch {
    return false
  }
}
