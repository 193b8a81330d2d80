// Exits with 0 if the service on this machine is ready, else with 1 and the reason.
import { BadSettings, readSettings } from '../config.ts'
import { checkService } from './doctor/check-service.ts'

try {
  const { state, text } = await checkService(readSettings(process.env))
  process.stdout.write(`${text}\n`)
  if (state !== 'ready') process.exitCode = 1
} catch (error) {
  if (!(error instanceof BadSettings)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
