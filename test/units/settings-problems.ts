import { type BadSettings, readSettings } from '../../src/config.ts'

/** The sentences of the refusal of these settings; none if they are valid. */
export function problemsOf(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    readSettings(env)
    return []
  } catch (error) {
    return (error as BadSettings).problems
  }
}
