from math import exp

from fastdx import Tem

tem = Tem.recommended()  # 20,000 English words are built in
print(tem.privatize("I would like a cup of coffee, please."))
bound = tem.guarantee.bound("coffee", "tea")
print(f"bound: {bound:.1f}, no output is over {exp(bound):,.0f} times likelier for coffee than tea")
