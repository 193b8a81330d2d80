import { type BadSettings, readSettings } from '../../src/config.ts'

/** The sentences with which these settings are refused; none if they are right. */
export function problemsOf(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    readSettings(env)
    return []
  } catch (error) {
    return (error as BadSettings).problems
  }
}
