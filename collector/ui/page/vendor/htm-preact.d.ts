// What the page uses of preact, its hooks and htm.
import type { VNode } from '../types.js'

export function html(strings: TemplateStringsArray, ...values: any[]): VNode
export function h(type: any, props: object | null, ...children: any[]): VNode
export function render(node: VNode, parent: Element): void
export function createContext<T>(value: T): { Provider: any; readonly value: T }
export function useContext<T>(context: { readonly value: T }): T
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((old: T) => T)) => void]
export function useRef<T>(initial: T): { current: T }
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T
export function useCallback<T extends (...args: any[]) => any>(f: T, inputs: readonly unknown[]): T
export function useErrorBoundary(f?: (error: any) => void): [any, () => void]
